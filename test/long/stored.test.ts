import { expect, it } from 'vitest';
import { checkedRows } from '../stored/rows-left.ts';
import { runsOfSeeds } from '../stored/seeded-runs.ts';
import { runOnStack, type StackRun } from '../stored/stack-runs.ts';
import { StoredStack } from '../stored/stored-stack.ts';
import { storiesOfSeeds } from '../stored/virtual-stage.ts';

/** Others: `STORED_SEED=100000 npm run test:long -- test/long/stored.test.ts`; fewer: `STORED_SEEDS=20`. */
const first = Number(process.env['STORED_SEED'] ?? 1_000);
const count = Number(process.env['STORED_SEEDS'] ?? 500);
/** Concurrent stories. Half of the stack's processes are for runs. */
const width = 8;

it('background responses of 500 seeds are complete, charged once and visible to no other account, whatever fails', async () => {
  const runs = await runsOfSeeds(first, count);
  expect(runs.filter(({ runFell }) => runFell).length).toBeGreaterThan(count / 8);
}, 600_000);

it('stored and keyed answers of four times as many seeds hold in virtual time', async () => {
  const stories = await storiesOfSeeds(first, 4 * count);
  expect(stories.filter(({ fell }) => fell > 0).length).toBeGreaterThan(count / 2);
}, 600_000);

it('stories of 500 seeds hold on the running stack, whose processes are killed and frozen and whose store rejects calls', async () => {
  const begunMs = Date.now();
  const seeds = Array.from({ length: count }, (_, i) => first + i);
  const stack = await StoredStack.start(seeds);
  try {
    const runs: StackRun[] = [];
    const wrong: string[] = [];
    const expiring: [number, string][] = [];
    const left = [...seeds];
    const work = async (): Promise<void> => {
      for (let seed = left.shift(); seed !== undefined; seed = left.shift())
        try {
          runs.push(await runOnStack(stack, seed, expiring));
        } catch (error) {
          wrong.push(`seed ${seed}: ${(error as Error).message}`);
          console.log(wrong.at(-1));
        } finally {
          if (left.length % 50 === 0) console.log(`${left.length} seeds are left`);
        }
    };
    await Promise.all(Array.from({ length: width }, work));
    const rows = checkedRows(await stack.rowsLeft(), runs);
    wrong.push(...rows.wrong);
    console.log(
      JSON.stringify(
        {
          ...figuresOf(runs, stack),
          charged: rows.charged,
          seconds: Math.round((Date.now() - begunMs) / 1_000),
        },
        null,
        2,
      ),
    );
    expect(wrong).toEqual([]);
    expect(runs.filter(({ cuts }) => cuts > 0).length).toBeGreaterThan(count / 4);
    await stack.expire();
    for (const [seed, id] of expiring)
      for (const path of [`/${id}`, `/${id}/input_items`])
        expect((await stack.own(`account-${seed}`, { method: 'GET', path })).status).toBe(404);
  } finally {
    await stack.stop();
  }
}, 7_200_000);

function figuresOf(runs: StackRun[], { befallen, storeFaults }: StoredStack): Record<string, unknown> {
  const counted = (of: (run: StackRun) => string): Record<string, number> =>
    Object.fromEntries(
      [...Map.groupBy(runs.map(of).toSorted(), String)].map(([name, all]) => [name, all.length]),
    );
  return {
    runs: runs.length,
    calls: runs.reduce((sum, run) => sum + run.calls, 0),
    cuts: runs.reduce((sum, run) => sum + run.cuts, 0),
    stories: counted(({ kind, status }) => `${kind}: ${status}`),
    fates: counted(({ befell }) => befell),
    befallen,
    storeFaults,
  };
}
