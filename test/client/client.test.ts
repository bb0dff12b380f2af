/**
 * One file, because Vitest gives files to workers, and each worker would start its own stack and keep it: 2 CPU seconds, and
 * 0.6 for each minute that it is idle.
 */
import { readdirSync } from 'node:fs';
import { afterAll, describe } from 'vitest';
import { stopClientStack } from './client-stack.ts';

afterAll(stopClientStack);

const files = readdirSync(import.meta.dirname)
  .flatMap((name) => /^(.+)\.test\.ts$/.exec(name)?.[1] ?? [])
  .filter((name) => name !== 'client');
describe.each(files)('%s', async (name) => {
  await import(`./${name}.test.ts`);
});
describe('pages', async () => {
  await import('../local/pages.test.ts');
});
