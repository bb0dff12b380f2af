import { describe, expect, it } from 'vitest';
import { isSubscribed, listPlanSlots, type Subscription } from '../../../shared/billing/reservation.ts';
import type { PlanEntry, PlanEntryItem } from '../../../shared/wire/public-api.ts';

const now = Date.UTC(2026, 10, 21);
const day = 86_400_000;
const item = (id: string, value: number, models = ['m']): PlanEntryItem => ({
  id,
  name: `name of ${id}`,
  icon: '',
  value,
  models,
});
const plans: PlanEntry[] = [
  { level: 1, price: 10, items: [item('small', 5)] },
  { level: 2, price: 20, items: [item('big', 100), item('small', 50), item('other', 9, ['n'])] },
  { level: 3, price: 30, items: [item('endless', -1), item('none', 0), { ...item('unnamed', 1), name: '' }] },
];
const held = (level: number, more: Partial<Subscription> = {}): Subscription => ({
  level,
  since: Date.UTC(2026, 8, 10),
  ...more,
});
const keys = (plan: Subscription | undefined, atMs = now, model: string | undefined = 'm'): string[] =>
  listPlanSlots({ plans, subscription: plan, nowMs: atMs, model }).map((slot) => slot.key);

describe('a plan', () => {
  const cases: [string, Subscription | undefined, boolean][] = [
    ['that was not bought is inactive', undefined, false],
    ['without an end is active', held(1), true],
    ['is active from its first moment', held(1, { since: now }), true],
    ['in the future is not yet active', held(1, { since: now + 1 }), false],
    ['is active before its end', held(1, { until: now + 1 }), true],
    ['is inactive at its end', held(1, { until: now }), false],
  ];
  it.each(cases)('%s', (_case, plan, expected) => {
    expect(isSubscribed(plan, now)).toBe(expected);
    expect(keys(plan).length > 0).toBe(expected);
  });

  it('of a discontinued level offers nothing', () => {
    expect(listPlanSlots({ plans: plans.slice(1), subscription: held(1), nowMs: now, model: 'm' })).toEqual(
      [],
    );
  });
});

describe('the entries of a plan', () => {
  it('are all returned without a model', () => {
    expect(listPlanSlots({ plans, subscription: held(2), nowMs: now })).toHaveLength(3);
  });

  it('keep their count when the level changes, because it goes by the id of the entry', () => {
    const slots = [1, 2].map((level) =>
      listPlanSlots({ plans, subscription: held(level), nowMs: now, model: 'm' }).find(
        (s) => s.itemId === 'small',
      ),
    );
    expect(slots.map((slot) => [slot?.key, slot?.limit])).toEqual([
      ['small@2026-11-10', 5],
      ['small@2026-11-10', 50],
    ]);
  });

  it('keep their count over a renewal, count anew each month, and name the count that can be deleted', () => {
    expect(keys(held(1, { until: now + day }))).toEqual(keys(held(1, { until: now + 30 * day })));
    const [november] = listPlanSlots({ plans, subscription: held(1), nowMs: now, model: 'm' });
    expect(november).toMatchObject({ resetsAtMs: Date.UTC(2026, 11, 10), staleKey: 'small@2026-09-10' });
    expect(keys(held(1), november?.resetsAtMs)).toEqual(['small@2026-12-10']);
  });

  it('may be unlimited but are counted all the same; 0 is a limit', () => {
    const slots = listPlanSlots({ plans, subscription: held(3), nowMs: now, model: 'm' });
    expect(slots.map(({ itemId, name, limit, key }) => [itemId, name, limit, key])).toEqual([
      ['endless', 'name of endless', null, 'endless@2026-11-10'],
      ['none', 'name of none', 0, 'none@2026-11-10'],
      ['unnamed', 'unnamed', 1, 'unnamed@2026-11-10'],
    ]);
  });
});
