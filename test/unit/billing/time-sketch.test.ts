import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findBin, findQuantile, timeBins } from '../../../shared/billing/time-sketch.ts';

const times = fc.array(fc.integer({ min: 10, max: 890_000 }), { minLength: 1, maxLength: 200 });
const shares = fc.constantFrom(0.01, 0.5, 0.9, 0.95, 1);

type Sketch = Record<string, number>;
const sketch = (all: readonly number[]): Sketch => {
  const counts: Sketch = {};
  for (const ms of all) counts[findBin(ms)] = (counts[findBin(ms)] ?? 0) + 1;
  return counts;
};
const merge = (a: Sketch, b: Sketch): Sketch =>
  Object.fromEntries(timeBins.map((name) => [name, (a[name] ?? 0) + (b[name] ?? 0)]));

describe('a time sketch', () => {
  it('estimates each quantile within 5 % of the exact one', () => {
    fc.assert(
      fc.property(times, shares, (all, share) => {
        const exact = all.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(share * all.length)) - 1] ?? 0;
        const found = findQuantile(sketch(all), share) ?? 0;
        // The result is rounded to whole milliseconds.
        expect(Math.abs(found - exact)).toBeLessThanOrEqual(0.05 * exact + 0.5);
      }),
    );
  });

  it('merged from parts equals the sketch of all values', () => {
    fc.assert(
      fc.property(times, times, shares, (a, b, share) => {
        const merged = merge(sketch(a), sketch(b));
        expect(findQuantile(merged, share)).toBe(findQuantile(sketch([...a, ...b]), share));
      }),
    );
  });

  it.each([
    ['a negative time', -5, 'fc_0'],
    ['10 ms', 10, 'fc_0'],
    ['11 ms', 11, 'fc_1'],
    ['a time beyond all limits', 1e12, timeBins.at(-1)],
  ])('counts %s in the bin %s %s', (_what, ms, bin) => {
    expect(findBin(ms)).toBe(bin);
  });

  it('has no quantile without times, and ignores other figures', () => {
    expect(findQuantile({}, 0.5)).toBeUndefined();
    expect(findQuantile({ calls: 7, first_content_500: 3 }, 0.5)).toBeUndefined();
  });
});
