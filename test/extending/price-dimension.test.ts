import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CopiedTree } from './copied-tree.ts';

/** Adds a part of the input with its own price: the diff is all that it takes. */
const fixture = 'trial-price-dimension.patch';
const filesMax = 8;
let tree: CopiedTree;

beforeAll(async () => {
  tree = new CopiedTree();
  await tree.apply(fixture);
});
afterAll(() => tree.remove());

it('one line of the table makes the product read, price, store and show a trial part of the input, with changes in few files', async () => {
  const patch = readFileSync(path.join(import.meta.dirname, 'fixtures', fixture), 'utf8');
  expect(patch.match(/^diff --git /gm)?.length).toBeLessThanOrEqual(filesMax);
  await tree.tool('tsc', '--noEmit');
  const { failed, passed } = await tree.tests(
    'test/unit/billing',
    'test/unit/config',
    'test/unit/relay/account',
    'test/unit/upstreams/vendor-usage.test.ts',
  );
  expect(failed).toEqual([]);
  expect(passed.filter((name) => name.startsWith('grounding.test.ts ')).length).toBe(3);
}, 120_000);
