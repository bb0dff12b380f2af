import { describe, expect, it } from 'vitest';
import { ChargeRow } from '../../../../shared/config/rows/charge-row.ts';
import { createEmptySnapshot } from '../../../../shared/config/snapshot.ts';
import { listCharges } from '../../../../shared/relay/catalog/catalog-lists.ts';

const rule = (id: number, models: string[], from?: string) =>
  ChargeRow.parse({ id, type: 'token-billing', models, input: 0.01, output: 0.02, ...(from && { from }) });
const listed = (charges: ChargeRow[], nowMs: number) =>
  listCharges({ ...createEmptySnapshot(0), charges }, nowMs);
const january = Date.UTC(2027, 0, 1);

describe('the price list', () => {
  const charges = [rule(1, ['a', 'b']), rule(2, []), rule(3, ['b']), rule(9, ['a'], '2027-01-01')];
  const names = (nowMs: number) => listed(charges, nowMs).map(({ id, models }) => [id, models]);

  it('includes a rule from its date on, and no model twice because of dates', () => {
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

  it('omits a rule whose models all have newer rules', () => {
    const replaced = [rule(1, ['a']), rule(2, ['a'], '2027-01-01')];
    expect(listed(replaced, january).map(({ id }) => id)).toEqual([2]);
  });

  it('has the prices of the open window and their end, for rules with windows only', () => {
    const hours = { name: 'peak', from: '09:00', to: '12:00', zone: 'Asia/Shanghai' };
    const windows = [
      { ...hours, factor: 0.3 },
      { ...hours, name: 'late', from: '14:00', to: '18:00', input: 0.5, output: 0.7 },
    ];
    const byCall = ChargeRow.parse({
      id: 2,
      type: 'times-billing',
      models: ['b'],
      output: 0.05,
      windows: [{ ...hours, factor: 3 }],
    });
    const rules = [ChargeRow.parse({ ...rule(1, ['a']), windows }), byCall, rule(3, ['c'])];
    const at = (text: string) =>
      listed(rules, Date.parse(text)).map(({ input, output, ...more }) => [
        input,
        output,
        more.window,
        more.until,
      ]);
    const nine = Date.parse('2026-11-30T01:00:00Z') / 1000;
    expect(at('2026-11-30T00:59:00Z')).toEqual([
      [0.01, 0.02, null, nine],
      [0, 0.05, null, nine],
      [0.01, 0.02, undefined, undefined],
    ]);
    expect(at('2026-11-30T01:00:00Z')).toEqual([
      [0.003, 0.006, 'peak', nine + 3 * 3_600],
      [0, 0.15, 'peak', nine + 3 * 3_600],
      [0.01, 0.02, undefined, undefined],
    ]);
    expect(at('2026-11-30T06:00:00Z')[0]).toEqual([0.5, 0.7, 'late', nine + 9 * 3_600]);
    rules.push(rule(9, ['a', 'c'], '2026-11-30T06:30:00Z'), rule(10, ['c'], '2026-11-30T06:10:00Z'));
    expect(at('2026-11-30T06:00:00Z').map(([, , , until]) => until)).toEqual([
      nine + 5.5 * 3_600,
      nine + 24 * 3_600,
      undefined,
    ]);
    expect(Object.keys(listed([rule(3, ['c'])], 0)[0] ?? {})).toEqual([
      'id',
      'type',
      'models',
      'input',
      'output',
      'anonymous',
    ]);
  });
});
