import { expect, it } from 'vitest';
import { runsOfSeeds } from '../stored/seeded-runs.ts';
import { checkRows, startStoredStack, type StackRun } from '../stored/stack-runs.ts';

/** Others: `STORED_SEED=100000 npm run test:long -- test/long/stored.test.ts`. */
const first = Number(process.env['STORED_SEED'] ?? 1_000);
const count = 500;
/** At once. Half of the processes that the stack may have are for runs. */
const width = 8;

it('500 background responses are whole, charged once and seen by nobody else, whatever fails', async () => {
  const runs = await runsOfSeeds(first, count);
  expect(runs.filter(({ runFell }) => runFell).length).toBeGreaterThan(80);
}, 600_000);

it('the same of 500 on the running stack, whose processes are killed and stand still and whose store refuses', async () => {
  const stack = await startStoredStack();
  try {
    const runs: StackRun[] = [];
    let next = first;
    const work = async (): Promise<void> => {
      for (let seed = next++; seed < first + count; seed = next++)
        runs.push(
          await stack.run(seed).catch((error: Error) => {
            throw new Error(`seed ${seed}: ${error.message}`, { cause: error });
          }),
        );
    };
    await Promise.all(Array.from({ length: width }, work));
    checkRows(await stack.rowsLeft());
    expect(runs.filter(({ status }) => status === 'completed').length).toBeGreaterThan(count / 3);
    expect(runs.filter(({ cuts }) => cuts > 0).length).toBeGreaterThan(count / 3);
    for (const status of ['failed', 'cancelled'])
      expect(runs.some((run) => run.status === status)).toBe(true);
  } finally {
    await stack.stop();
  }
}, 3_600_000);
