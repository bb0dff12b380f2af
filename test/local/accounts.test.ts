/**
 * One file, because Vitest gives files to workers, and each would start its own stack and ten processes of the function:
 * together they take 7 CPU seconds less. The first one waits at its end for a lease that starts with it.
 */
import { afterAll, describe } from 'vitest';
import { shareAccountsStack, stopAccountsStack } from './accounts-stack.ts';

shareAccountsStack();
afterAll(stopAccountsStack);

describe.each(['limits', 'prepaid', 'threads', 'entry'])('%s', async (name) => {
  await import(`./${name}.test.ts`);
});
