/** One file, because Vitest gives files to workers, and each would start its own stack, which takes 2 CPU seconds. */
import { afterAll, describe } from 'vitest';
import { stopVendorStack } from './vendor-stack.ts';

afterAll(stopVendorStack);

const files = [
  ['tool loops', () => import('./tool-loops.test.ts')],
  ['clients of Messages', () => import('./messages-clients.test.ts')],
  ['long loops', () => import('./long-loops.test.ts')],
  ['new models', () => import('./new-models.test.ts')],
  ['compaction', () => import('./compaction.test.ts')],
] as const;
describe.each(files)('%s', async (_name, load) => {
  await load();
});
