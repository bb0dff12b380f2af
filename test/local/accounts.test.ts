/**
 * One file, because Vitest gives files to workers, and each would start its own stack and ten processes of the function:
 * together they take 10 CPU seconds less.
 */
import { afterAll, describe } from 'vitest';
import { shareAccountsStack, stopAccountsStack } from './accounts-stack.ts';

shareAccountsStack();
afterAll(stopAccountsStack);

describe.each(['money', 'limits', 'prepaid', 'threads', 'entry'])('%s', async (name) => {
  await import(`./${name}.test.ts`);
});
