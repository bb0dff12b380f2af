import { afterAll, beforeAll, expect, it } from 'vitest';
import { CopiedTree } from './copied-tree.ts';

/** docs/add-an-upstream-type.md, done: the diff is what the page asks for and nothing else. */
let tree: CopiedTree;

beforeAll(async () => {
  tree = new CopiedTree();
  await tree.apply('trial-channel-type.patch');
});
afterAll(() => tree.remove());

it('a trial type with its own header, attribute, limit field, model list and failure code type-checks and passes its tests', async () => {
  await tree.tool('tsc', '--noEmit');
  const { failed, passed } = await tree.tests('test/unit/upstreams', 'test/unit/config/tables-doc.test.ts');
  expect(failed).toEqual([]);
  expect(passed.filter((name) => name.startsWith('trial.test.ts ')).length).toBeGreaterThan(5);
}, 120_000);

it('the CLI describes the attribute in the type’s own words', async () => {
  const help = await tree.node('infra/ops/cli/main.ts', 'channel', 'new', '--help');
  expect(help).toMatch(/  tenant +Tenant at the upstream \(trial\)/);
  expect(help).toMatch(/  type +openai, .*trial/);
});
