import { afterAll, beforeAll, expect, it } from 'vitest';
import { HandEditRig, rowKey } from '../support/hand-edit-rig.ts';
import { handEdits, rowsBefore, type HandEdit } from '../support/hand-edits.ts';
import type { TableName } from '../../shared/tables/table-names.ts';

type Row = Record<string, unknown>;

/** Time limit for a table in which a hundred rows change at once, on a machine busy with other tests. */
const within = { timeout: 25_000, interval: 400 };
let rig: HandEditRig;

beforeAll(async () => {
  rig = await HandEditRig.start();
});
afterAll(() => rig.stop());

/** Rounds in which each row has one error at a time. */
function rounds(): HandEdit[][] {
  const byRow = Map.groupBy(handEdits, ([table, row]) => JSON.stringify([table, rowKey(table, row)]));
  return [...byRow.values()].reduce<HandEdit[][]>((all, edits) => {
    for (const [at, edit] of edits.entries()) (all[at] ??= []).push(edit);
    return all;
  }, []);
}

const unmarked = async (edits: HandEdit[]): Promise<string[]> =>
  (
    await Promise.all(
      edits.map(async (edit) => {
        const [table, row] = edit;
        return (await rig.isMarked(edit)) ? [] : [`${JSON.stringify(row)}: ${await rig.mark(table, row)}`];
      }),
    )
  ).flat();

it('marks every one of more than a hundred manual errors, whichever tables reveal it', async () => {
  expect(handEdits.length).toBeGreaterThan(110);
  // Prices are compared with the published ones.
  await expect.poll(() => rig.offers('dear'), within).toBe(true);
  for (const edits of rounds()) {
    await Promise.all(edits.map(([table, row]) => rig.put(table, row)));
    await expect.poll(() => unmarked(edits), within).toEqual([]);
  }
}, 60_000);

it('leaves no mark for an edit that is undone at once, and writes fewer marks than edits', async () => {
  const hash = 'a'.repeat(64);
  const good: [TableName, Row][] = [
    rowsBefore[0]!,
    ['keys', { hash, account: 'customer', models: ['served'] }],
  ];
  const bad: [TableName, Row][] = [
    ['channels', { ...good[0]![1], endpoint: 'nonsense' }],
    ['keys', { hash, account: 'nobody', models: ['gpt-99'] }],
  ];
  rig.calls.length = 0;
  const times = 50;
  for (let at = 0; at < times; at += 1)
    for (const [table, row] of [...bad, ...good]) await rig.put(table, row);
  // Behind them in the streams.
  const last: HandEdit[] = [
    ['channels', { id: 'last' }, 'models: '],
    ['keys', { hash: 'b'.repeat(64) }, 'account: '],
  ];
  await Promise.all(last.map(([table, row]) => rig.put(table, row)));
  await expect.poll(() => unmarked(last), within).toEqual([]);
  for (const [table, row] of good) await expect.poll(() => rig.mark(table, row), within).toBe('');
  const marks = rig.calls.filter(({ action, table }) => action === 'UpdateItem' && table !== 'relay-runtime');
  expect(marks.length).toBeLessThan(times * 4);
});
