import { describe, expect, it } from 'vitest';
import {
  imbalance,
  type QuotaItem,
  refundOf,
  type ReserveWrite,
} from '../../../shared/billing/quota-item.ts';
import { afterClose, afterReserve, mayClose, mayReserve } from '../../support/quota-rules.ts';
import { closeWrite, entry, quota, reserveWrite } from './quota-fixtures.ts';

const slot = { key: 'a@2026-11-01', staleKey: 'a@2026-09-01', limit: 2 };
const place = { key: 'key1', max: 2 };
const placed = (...ids: string[]) => new Map([['key1', new Set(ids)]]);
const rate = { minute: 7, max: 3, tokens: 2, starts: false };
const full = new Map(Array.from({ length: 100 }, (_, index) => [`open${index}`, entry()] as const));
const counted = (minute: number, count: number) => ({
  rate: { minute, count, tokens: 2 * count },
});

describe('a reserve is allowed', () => {
  const cases: [string, QuotaItem, ReserveWrite, boolean][] = [
    ['for the whole balance', quota(10n), reserveWrite(10n), true],
    ['for no more than the balance', quota(9n), reserveWrite(10n), false],
    ['for nothing, on an empty balance', quota(0n), reserveWrite(0n), true],
    ['for nothing, on a balance below zero', quota(-5n), reserveWrite(0n), true],
    ['once for an id', quota(9n, { open: new Map([['call1', entry()]]) }), reserveWrite(0n), false],
    [
      'with an entry left below the bound',
      quota(9n, { open: new Map([...full].slice(1)) }),
      reserveWrite(0n, { openMax: 100 }),
      true,
    ],
    ['without one not', quota(9n, { open: full }), reserveWrite(0n, { openMax: 100 }), false],
    ['beside any number of calls without a bound', quota(9n, { open: full }), reserveWrite(0n), true],
    ['that leaves less than it has to not', quota(9n), reserveWrite(4n, { atLeast: 10n }), false],
    ['with a share of as many parts', quota(9n, { parts: 4 }), reserveWrite(0n, { parts: 4 }), true],
    ['with a share of another number not', quota(9n, { parts: 8 }), reserveWrite(0n, { parts: 4 }), false],
    ['on a slot that nobody used', quota(0n), reserveWrite(0n, { slot }), true],
    [
      'on the last call of a slot',
      quota(0n, { plan: new Map([[slot.key, 1]]) }),
      reserveWrite(0n, { slot }),
      true,
    ],
    ['on a full slot not', quota(9n, { plan: new Map([[slot.key, 2]]) }), reserveWrite(0n, { slot }), false],
    ['on a slot of 0 calls not', quota(9n), reserveWrite(0n, { slot: { ...slot, limit: 0 } }), false],
    [
      'on an unlimited slot always',
      quota(0n, { plan: new Map([[slot.key, 1e9]]) }),
      reserveWrite(0n, { slot: { ...slot, limit: null } }),
      true,
    ],
    ['beside another call of the key', quota(0n, { places: placed('a') }), reserveWrite(0n, { place }), true],
    [
      'beside too many calls of it not',
      quota(9n, { places: placed('a', 'b') }),
      reserveWrite(0n, { place }),
      false,
    ],
    [
      'beside many calls of another',
      quota(0n, { places: new Map([['key2', new Set(['a', 'b', 'c'])]]) }),
      reserveWrite(0n, { place }),
      true,
    ],
    ['within the rate', quota(0n, counted(7, 2)), reserveWrite(0n, { rate }), true],
    ['over the rate not', quota(9n, counted(7, 3)), reserveWrite(0n, { rate }), false],
    [
      'in a minute that is another than was thought not',
      quota(9n, counted(8, 0)),
      reserveWrite(0n, { rate }),
      false,
    ],
    ['in a minute of which nothing is counted not', quota(9n), reserveWrite(0n, { rate }), false],
    ['as the first of all', quota(0n), reserveWrite(0n, { rate: { ...rate, starts: true } }), true],
    [
      'as the first of a minute',
      quota(0n, counted(6, 3)),
      reserveWrite(0n, { rate: { ...rate, starts: true } }),
      true,
    ],
    [
      'as the first, but others came first, not',
      quota(9n, counted(7, 1)),
      reserveWrite(0n, { rate: { ...rate, starts: true } }),
      false,
    ],
  ];
  it.each(cases)('%s', (_case, item, write, allowed) => {
    expect(mayReserve(item, write)).toBe(allowed);
  });
});

describe('a reserve', () => {
  it('moves the amount to the open entry, counts the slot, the place and the minute', () => {
    const before = quota(50n, { plan: new Map([[slot.staleKey, 9]]), ...counted(7, 1) });
    const write = reserveWrite(20n, { slot, place, rate });
    const after = afterReserve(before, write);
    expect(after).toMatchObject({ available: 30n, spent: 0n, granted: 50n, settled: 0 });
    expect(after.open.get('call1')).toBe(write.entry);
    expect([...after.plan]).toEqual([[slot.key, 1]]);
    expect(after.places).toEqual(placed('call1'));
    expect(after.rate).toEqual({ minute: 7, count: 2, tokens: 4 });
    expect(imbalance(after)).toBeUndefined();
  });

  it('starts a minute anew', () => {
    const after = afterReserve(
      quota(0n, counted(6, 3)),
      reserveWrite(0n, { rate: { ...rate, starts: true } }),
    );
    expect(after.rate).toEqual({ minute: 7, count: 1, tokens: 2 });
  });

  it('leaves the item that it was made from alone', () => {
    const before = quota(50n);
    afterReserve(before, reserveWrite(20n, { slot, place, rate }));
    expect(before).toEqual(quota(50n));
  });
});

/** An item on which 20 are reserved, and the write that did it. */
const open = (more: Partial<ReserveWrite> = {}): [QuotaItem, ReserveWrite] => {
  const write = reserveWrite(20n, more);
  return [afterReserve(quota(50n), write), write];
};

describe('a close', () => {
  it.each([
    [0n, 50n],
    [7n, 43n],
    [20n, 30n],
    [120n, -70n],
  ])('charges %s in full and returns the rest: %s are left', (charge, available) => {
    const [item, write] = open();
    const after = afterClose(item, closeWrite(write, charge));
    expect(after).toMatchObject({ available, spent: charge, granted: 50n, settled: 1 });
    expect(after.open.size).toBe(0);
    expect(after.last).toMatchObject({ id: 'call1', charge });
    expect(imbalance(after)).toBeUndefined();
    expect(refundOf(closeWrite(write, charge))).toBe(20n - charge);
  });

  it('frees the place of the key, and never gives a minute back', () => {
    const [item, write] = open({ place, rate: { ...rate, starts: true } });
    const after = afterClose(item, closeWrite(write, 1n, true));
    expect(after.places.size).toBe(0);
    expect(after.rate).toEqual({ minute: 7, count: 1, tokens: 2 });
  });

  it('releases a slot only when the close says so', () => {
    const [item, write] = open({ slot });
    expect(afterClose(item, closeWrite(write, 0n, true)).plan.get(slot.key)).toBe(0);
    expect(afterClose(item, closeWrite(write, 0n, false)).plan.get(slot.key)).toBe(1);
  });

  it('releases nothing that was not taken', () => {
    const [item, write] = open();
    const after = afterClose(item, closeWrite(write, 0n, true));
    expect([...after.plan, ...after.places]).toEqual([]);
  });

  it('is allowed once, for what is open under the id, and not for a tombstone in its place', () => {
    const [item, write] = open();
    const close = closeWrite(write, 1n);
    expect(mayClose(item, close)).toBe(true);
    expect(mayClose(afterClose(item, close), close)).toBe(false);
    const tombstone = entry({ tombstone: true });
    const guarded = quota(1n, { open: new Map([['call1', tombstone]]) });
    expect(mayClose(guarded, close)).toBe(false);
    expect(mayClose(guarded, { ...close, entry: tombstone })).toBe(true);
  });
});

describe('the check of an item', () => {
  it('says by how much the accounts do not balance', () => {
    expect(imbalance(quota(5n))).toBeUndefined();
    expect(imbalance(quota(5n, { granted: 7n }))).toBe(-2n);
    expect(imbalance(quota(5n, { spent: 1n, open: new Map([['x', entry({ amount: 3n })]]) }))).toBe(4n);
  });
});
