import { afterAll, beforeAll, expect, it } from 'vitest';
import { CopiedTree } from './copied-tree.ts';

/** docs/add-a-setting.md, done: the diff is what the page asks for and nothing else. */
let tree: CopiedTree;

beforeAll(async () => {
  tree = new CopiedTree();
  await tree.apply('trial-setting.patch');
});
afterAll(() => tree.remove());

it('a trial setting type-checks, is read from its row, rejected when it is invalid, and used in an answer', async () => {
  await tree.tool('tsc', '--noEmit');
  const { failed, passed } = await tree.tests('test/unit/relay/http', 'test/unit/config');
  expect(failed).toEqual([]);
  expect(passed).toContain(
    'cors-max-age.test.ts a preflight says how long its answer may be kept, as the setting cors_max_age says',
  );
  expect(passed.filter((name) => name.startsWith('cors-max-age.test.ts ')).length).toBe(5);
  expect(passed.filter((name) => name.startsWith('tables-doc.test.ts docs/tables.md, settings'))).not.toEqual(
    [],
  );
}, 120_000);
