import { describe, expect, it } from 'vitest';
import { ChargeRow } from '../../../../shared/config/rows/charge-row.ts';
import { createEmptySnapshot } from '../../../../shared/config/snapshot.ts';
import { listCharges } from '../../../../shared/relay/catalog/catalog-lists.ts';

const rule = (id: number, models: string[], from?: string) =>
  ChargeRow.parse({ id, type: 'token-billing', models, input: 0.01, output: 0.02, ...(from && { from }) });
const listed = (charges: ChargeRow[], nowMs: number) =>
  listCharges({ ...createEmptySnapshot(0), charges }, nowMs);
const january = Date.UTC(2027, 0, 1);

describe('the list of charges', () => {
  const charges = [rule(1, ['a', 'b']), rule(2, []), rule(3, ['b']), rule(9, ['a'], '2027-01-01')];
  const names = (nowMs: number) => listed(charges, nowMs).map(({ id, models }) => [id, models]);

  it('has a rule from its date on, and no model twice because of dates', () => {
    expect(names(january - 1)).toEqual([
      [1, ['a', 'b']],
      [2, []],
      [3, ['b']],
    ]);
    expect(names(january)).toEqual([
      [1, ['b']],
      [2, []],
      [3, ['b']],
      [9, ['a']],
    ]);
  });

  it('leaves out a rule that others replaced for all its models', () => {
    const replaced = [rule(1, ['a']), rule(2, ['a'], '2027-01-01')];
    expect(listed(replaced, january).map(({ id }) => id)).toEqual([2]);
  });
});
