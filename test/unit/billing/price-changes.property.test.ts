import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { listPriceChanges, findRule } from '../../../shared/billing/price.ts';
import { readCharge, type ChargeRow } from '../../../shared/config/rows/charge-row.ts';
import { createEmptySnapshot } from '../../../shared/config/snapshot.ts';
import { listCharges } from '../../../shared/relay/catalog/catalog-lists.ts';

/** Overlapping dates, equal dates, and the ends of the calendar. */
const froms = [
  '0001-01-01',
  '1970-01-01',
  '2026-11-22',
  '2026-11-22T00:00:01Z',
  '2026-12-01',
  '9999-12-31T23:59:59Z',
];
const models = ['a', 'b', 'c'];

const rules = fc
  .array(
    fc.record({
      from: fc.option(fc.constantFrom(...froms), { nil: undefined }),
      models: fc.subarray(models),
    }),
    { maxLength: 6 },
  )
  .map((each) =>
    each.map((row, at): ChargeRow => {
      const reading = readCharge({
        id: at + 1,
        type: 'token-billing',
        input: at,
        output: at,
        ...JSON.parse(JSON.stringify(row)),
      });
      if ('problem' in reading) throw new Error(reading.problem);
      return reading.row;
    }),
  );
const times = fc.constantFrom(...froms.map(Date.parse)).chain((ms) => fc.constantFrom(ms - 1, ms, ms + 1));

describe('rules with dates', () => {
  it('are listed with the prices that apply at each time', () => {
    fc.assert(
      fc.property(rules, times, (list, nowMs) => {
        const listed = listCharges({ ...createEmptySnapshot(0), charges: list }, nowMs);
        for (const model of models)
          expect(listed.find((entry) => entry.models.includes(model))?.id).toBe(
            findRule(list, model, nowMs)?.id,
          );
      }),
      { numRuns: 500 },
    );
  });

  it('are announced exactly when another rule starts to price a model', () => {
    fc.assert(
      fc.property(rules, times, (list, nowMs) => {
        const changes = listPriceChanges(list, models, nowMs);
        const announced = changes.flatMap(({ fromMs, rule, models: named }) =>
          named.map((model) => `${fromMs} ${model} ${rule.id}`),
        );
        const later = [
          ...new Set(list.flatMap(({ from }) => (from !== undefined && from > nowMs ? [from] : []))),
        ];
        const due = later.flatMap((fromMs) =>
          models.flatMap((model) => {
            const rule = findRule(list, model, fromMs);
            return rule && rule !== findRule(list, model, fromMs - 1)
              ? [`${fromMs} ${model} ${rule.id}`]
              : [];
          }),
        );
        expect(announced.toSorted()).toEqual(due.toSorted());
      }),
      { numRuns: 500 },
    );
  });
});
