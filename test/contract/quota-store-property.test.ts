import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findImbalance, type CloseKind } from '../../shared/billing/quota-item.ts';
import type { QuotaStore } from '../../shared/relay/ports/money-stores.ts';
import { slowTestMs } from '../support/emulator.ts';
import { MemoryQuotaStore } from '../support/memory-quota-store.ts';
import { openHotStore } from './quota-store-dynamo.ts';
import { closeOf, entryOf, itemOf, minute, reserveOf, slot } from './quota-store-rig.ts';

/** Reduces a reply to its contract: a store may return more. */
function words(reply: unknown): unknown {
  const { done, item } = (reply ?? {}) as Record<string, unknown>;
  return { done, item };
}

type Act = (store: QuotaStore, account: string) => Promise<unknown>;

// Few values each, so that writes meet: the same ids, slots and keys again and again.
const ids = fc.constantFrom('a', 'b', 'c', 'd');
const keys = fc.constantFrom('key1', 'key2');
const amounts = fc.oneof(fc.bigInt(0n, 30n), fc.constant(10n ** 20n + 1n));
const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });
const slots = fc
  .record({ item: fc.constantFrom('s', 't'), limit: fc.constantFrom(null, 0, 1, 2) })
  .map(({ item, limit }) => slot(limit, item));
const rates = fc.record({
  minute: fc.integer({ min: minute, max: minute + 2 }),
  max: fc.integer({ min: 0, max: 2 }),
  tokensMax: maybe(fc.nat(3)),
  tokens: fc.nat(2),
  starts: fc.boolean(),
});

/** Entries with which an id may have been opened, because a close does not read the store. */
const shapes = fc.record({
  id: ids,
  key: keys,
  amount: amounts,
  slot: maybe(slots),
  placeMax: maybe(fc.nat(2)),
  metered: fc.boolean(),
  rate: maybe(rates),
  uncountedLeases: maybe(fc.tuple(ids, fc.constantFrom(1, 2)).map((end) => new Map([end]))),
});

const reserves = shapes.map(({ id, key, amount, slot, placeMax, metered, ...shape }): [string, Act] => {
  const place = placeMax === undefined ? undefined : { key, max: placeMax };
  const write = (account: string) => {
    const { entry, ...rest } = reserveOf(account, { id, amount, slot, permit: place });
    return { ...rest, entry: { ...entry, key, metered: metered || undefined }, ...shape };
  };
  return [`reserve ${id}`, (store, account) => store.reserve(write(account))];
});

const kinds = fc.constantFrom<CloseKind[]>('settled', 'released', 'expired', 'cancelled');
const closes = fc
  .record({
    id: ids,
    charge: amounts,
    kind: kinds,
    releaseSlot: fc.boolean(),
    late: fc.boolean(),
    ifNotRenewed: fc.boolean(),
  })
  .map(({ id, charge, kind, releaseSlot, late, ifNotRenewed }): [string, Act] => [
    `close ${id}`,
    async (store, account) => {
      // Take the opened entry from a rejected write, as the reservations do.
      const seen = await store.reserve(reserveOf(account, { id, amount: 10n ** 30n }));
      const open = seen.done ? undefined : seen.item?.open.get(id);
      const entry = open && !late ? open : entryOf({ amount: 5n, tombstone: open?.tombstone === false });
      return store.close({ ...closeOf(account, { id, entry, charge, kind, releaseSlot }), ifNotRenewed });
    },
  ]);

const tombstones = ids.map((id): [string, Act] => [
  `tombstone ${id}`,
  (store, account) => store.tombstone({ account, id, entry: entryOf({ tombstone: true }) }),
]);
const renewals = fc
  .record({ id: ids, tombstone: fc.boolean(), until: fc.constantFrom(1, 2) })
  .map(({ id, tombstone, until }): [string, Act] => [
    `renew ${id}`,
    (store, account) => store.renew({ account, id, entry: entryOf({ tombstone }), until }),
  ]);
const creates = fc.constant<[string, Act]>(['create', (store, account) => store.create(account)]);

const sequences = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: reserves },
    { weight: 5, arbitrary: closes },
    { weight: 1, arbitrary: tombstones },
    { weight: 2, arbitrary: renewals },
    { weight: 1, arbitrary: creates },
  ),
  { minLength: 1, maxLength: 20 },
);

let dynamo: Awaited<ReturnType<typeof openHotStore>>;

beforeAll(async () => {
  dynamo = await openHotStore();
});
afterAll(() => dynamo[Symbol.asyncDispose]());

test(
  'both stores return and hold the same after any writes, and the account balances',
  async () => {
    let runs = 0;
    const property = fc.asyncProperty(sequences, fc.option(amounts), async (acts, available) => {
      const memory = new MemoryQuotaStore();
      const account = `account ${(runs += 1)}`;
      if (available !== null) {
        memory.items.set(account, itemOf(account, { available }));
        await dynamo.put(itemOf(account, { available }));
      }
      for (const [after, act] of acts) {
        const [saidThere, saidHere] = await Promise.all([act(memory, account), act(dynamo.store, account)]);
        const there = memory.items.get(account);
        const here = await dynamo.read(account);
        expect({ after, said: words(saidHere), item: here }).toEqual({
          after,
          said: words(saidThere),
          item: there,
        });
        expect({ after, off: there && findImbalance(there) }).toEqual({ after, off: undefined });
      }
    });
    await fc.assert(property, { numRuns: 60 });
  },
  slowTestMs,
);
