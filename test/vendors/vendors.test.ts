/** One file, because Vitest gives files to workers, and each would start its own stack, which takes 2 CPU seconds. */
import { readdirSync } from 'node:fs';
import { afterAll, describe } from 'vitest';
import { stopVendorStack } from './vendor-stack.ts';

afterAll(stopVendorStack);

const files = readdirSync(import.meta.dirname)
  .flatMap((name) => /^(.+)\.test\.ts$/.exec(name)?.[1] ?? [])
  .filter((name) => name !== 'vendors');
describe.each(files)('%s', async (name) => {
  await import(`./${name}.test.ts`);
});
