/** One file, because Vitest gives files to workers, and each would start its own stack, which takes 1.2 CPU seconds. */
import { readdirSync } from 'node:fs';
import { describe } from 'vitest';
import './hardening-stack.ts';

/** They start stacks of their own, for `npm run test:long`. */
const others = new Set(['hardening', 'stalled-readers', 'worst-tenant']);
const files = readdirSync(import.meta.dirname)
  .flatMap((name) => /^(.+)\.test\.ts$/.exec(name)?.[1] ?? [])
  .filter((name) => !others.has(name));
describe.each(files)('%s', async (name) => {
  await import(`./${name}.test.ts`);
});
