/** The contract of the quota store, case by case. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findImbalance, type QuotaItem } from '../../shared/billing/quota-item.ts';
import {
  closeOf,
  entryOf,
  itemOf,
  key,
  minute,
  now,
  reserveOf,
  slot,
  type OpenedStore,
  type ReserveWish,
} from './quota-store-rig.ts';

type Given = Partial<QuotaItem>;

const counted = (name: string, count: number) => new Map([[name, count]]);
const placed = (...ids: string[]) => new Map([[key, new Set(ids)]]);
const rated = (at: number, count: number, tokens = count) => ({ minute: at, count, tokens });
const openEntries = (count: number) =>
  new Map(Array.from({ length: count }, (_, index) => [`open${index}`, entryOf()]));
const lapsed = new Map([['crashed', now - 9]]);
const opened = (until: number) => new Map([['crashed', entryOf({ until })]]);
const huge = 10n ** 24n + 7n;
const rate = (max: number, starts: boolean, at = minute) => ({ minute: at, max, starts, tokens: 1 });

/** Each case: the item, the reserve, and the fields of the returned item. */
const admitted: [string, Given, ReserveWish, object][] = [
  ['the exact balance', { available: 10n }, { amount: 10n }, { available: 0n }],
  ['nothing, of an account that is in debt', { available: -5n }, {}, { available: -5n }],
  ['nothing, of an empty account', {}, {}, { available: 0n }],
  ['amounts that no float can hold', { available: huge }, { amount: huge - 3n }, { available: 3n }],
  ['the last entry below a bound', { open: openEntries(99) }, { openMax: 100 }, { available: 0n }],
  [
    'a call beside one that crashed',
    { open: opened(now - 9) },
    { openMax: 2, uncountedLeases: lapsed },
    { available: 0n },
  ],
  ['any number of entries without a bound', { open: openEntries(150) }, {}, { available: 0n }],
  [
    'a call whose need the balance covers',
    { available: 9n },
    { amount: 3n, balanceNeeded: 9n },
    { available: 6n },
  ],
  ['an account that was never split', {}, { shardCount: 1 }, { available: 0n }],
  ['an account split as expected', { shardCount: 4 }, { shardCount: 4 }, { shardCount: 4 }],
  ['the first call on a plan slot', {}, { slot: slot(1) }, { plan: counted(slot(1).key, 1) }],
  [
    'the last call on a plan slot',
    { plan: counted(slot(9).key, 8) },
    { slot: slot(9) },
    { plan: counted(slot(9).key, 9) },
  ],
  [
    'a call on an unlimited slot',
    { plan: counted(slot(0).key, 70) },
    { slot: slot(null) },
    { plan: counted(slot(0).key, 71) },
  ],
  ['the first place of a key', {}, { permit: { key, max: 1 } }, { permits: placed('call') }],
  [
    'the last place of a key',
    { permits: placed('a', 'b') },
    { permit: { key, max: 3 } },
    { permits: placed('a', 'b', 'call') },
  ],
  ['an account’s first call of a minute', {}, { rate: rate(1, true) }, { rate: rated(minute, 1) }],
  [
    'an account’s next call',
    { rate: rated(minute, 1) },
    { rate: rate(2, false) },
    { rate: rated(minute, 2) },
  ],
  ['a new minute', { rate: rated(minute - 1, 9) }, { rate: rate(9, true) }, { rate: rated(minute, 1) }],
];

const refused: [string, Given | undefined, ReserveWish][] = [
  ['an account without an item', undefined, {}],
  ['a unit more than the balance', { available: 9n }, { amount: 10n }],
  ['one unit, of an account that is in debt', { available: -1n }, { amount: 1n }],
  ['a unit more than a float can distinguish', { available: huge }, { amount: huge + 1n }],
  ['one entry more than a bound', { available: 1n, open: openEntries(100) }, { amount: 1n, openMax: 100 }],
  ['a call whose need exceeds the balance', { available: 8n }, { amount: 3n, balanceNeeded: 9n }],
  ['a share of an account that was split', { shardCount: 4 }, { shardCount: 1 }],
  ['a share of an account that was joined', {}, { shardCount: 4 }],
  ['an id that is open', { available: 9n, open: new Map([['call', entryOf()]]) }, { amount: 1n }],
  ['the id of a tombstone', { open: new Map([['call', entryOf({ tombstone: true })]]) }, {}],
  [
    'a call beside one that renewed its lease',
    { open: opened(now) },
    { openMax: 2, uncountedLeases: lapsed },
  ],
  ['a call beside one that was closed since', {}, { openMax: 2, uncountedLeases: lapsed }],
  ['a full plan slot', { plan: counted(slot(9).key, 9) }, { slot: slot(9) }],
  ['a plan slot with a limit of 0', {}, { slot: slot(0) }],
  ['a key at its limit', { permits: placed('a', 'b', 'c') }, { permit: { key, max: 3 } }],
  ['a key that may make no call', {}, { permit: { key, max: 0 } }],
  ['a full minute', { rate: rated(minute, 2) }, { rate: rate(2, false) }],
  [
    'a minute whose tokens are used',
    { rate: rated(minute, 1, 5) },
    { rate: { ...rate(9, false), tokensMax: 5 } },
  ],
  ['a share of no calls', {}, { rate: rate(0, true) }],
  [
    'a share of no calls in a minute that was counted ahead',
    { rate: rated(minute + 1, 0) },
    { rate: rate(0, true) },
  ],
  ['a minute that another call began', { rate: rated(minute, 1) }, { rate: rate(9, true) }],
  ['a minute that was never started', {}, { rate: rate(9, false) }],
  ['the next call of a minute that is over', { rate: rated(minute - 1, 1) }, { rate: rate(9, false) }],
  ['a minute before the counted one', { rate: rated(minute + 1, 1) }, { rate: rate(9, true) }],
  ['two conditions, one of which fails', { available: 1n }, { amount: 1n, slot: slot(0) }],
];

export function quotaStoreContract(name: string, open: () => Promise<OpenedStore & AsyncDisposable>): void {
  describe(`the quota store ${name}`, () => {
    let opened: OpenedStore & AsyncDisposable;
    let account = '';
    let cases = 0;
    const give = (given: Given): Promise<void> => opened.put(itemOf(account, given));
    const item = async (): Promise<QuotaItem> => {
      const found = await opened.read(account);
      if (!found) throw new Error('no item');
      return found;
    };

    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened[Symbol.asyncDispose]());
    beforeEach(() => {
      cases += 1;
      account = `account ${cases}`;
    });
    afterEach(async () => {
      const left = await opened.read(account);
      expect(left && findImbalance(left)).toBeUndefined();
    });

    describe('reserve', () => {
      test.each(admitted)('admits %s', async (_, given, wish, returned) => {
        await give(given);
        const before = await item();
        const write = reserveOf(account, wish);
        const reply = await opened.store.reserve(write);
        const after = await item();
        expect(reply).toEqual({ done: true, item: after });
        expect(after).toMatchObject(returned);
        expect(after.open).toEqual(new Map([...before.open, ['call', write.entry]]));
        expect(after.available).toBe(before.available - write.entry.amount);
        expect(after).toMatchObject({
          spent: before.spent,
          granted: before.granted,
          settled: before.settled,
        });
        expect(after.permits.get(key)?.has('call') ?? false).toBe(wish.permit !== undefined);
      });

      test.each(refused)('rejects %s, changes nothing, and returns the item', async (_, given, wish) => {
        if (given) await give(given);
        const before = await opened.read(account);
        const reply = await opened.store.reserve(reserveOf(account, wish));
        expect(reply).toEqual({ done: false, item: before });
        expect(await opened.read(account)).toEqual(before);
      });

      test('counts on slot, key and minute at once, and drops the slot of two months ago', async () => {
        const wish = { amount: 1n, slot: slot(5), permit: { key, max: 2 }, rate: rate(5, true) };
        await give({ available: 4n, plan: counted(slot(5).staleKey, 3) });
        await opened.store.reserve(reserveOf(account, wish));
        const after = await item();
        expect(after.plan).toEqual(counted(slot(5).key, 1));
        expect(after.permits).toEqual(placed('call'));
        expect(after.rate).toEqual(rated(minute, 1));
      });

      test('finds its own id open when repeated, and reserves nothing twice', async () => {
        await give({ available: 10n });
        const write = reserveOf(account, { amount: 4n });
        await opened.store.reserve(write);
        const again = await opened.store.reserve(write);
        expect(again.done ? undefined : again.item?.open.get('call')).toEqual(write.entry);
        expect((await item()).available).toBe(6n);
      });

      test('admits exactly 30 of 60 concurrent reserves of 10 each against 300', async () => {
        await give({ available: 300n });
        const replies = await Promise.all(
          Array.from({ length: 60 }, (_, index) =>
            opened.store.reserve(reserveOf(account, { id: `call${index}`, amount: 10n })),
          ),
        );
        expect(replies.filter(({ done }) => done)).toHaveLength(30);
        const after = await item();
        expect(after.available).toBe(0n);
        expect(after.open.size).toBe(30);
      });
    });

    describe('close', () => {
      const charged: [string, bigint, bigint, bigint][] = [
        ['all that was reserved', 6n, 6n, 4n],
        ['less, and returns the rest', 6n, 1n, 9n],
        ['nothing, and returns everything', 6n, 0n, 10n],
        ['more, into debt', 6n, 30n, -20n],
        ['an amount that was not reserved', 0n, 3n, 7n],
        ['amounts that no float can hold', 5n, huge, 10n - huge],
      ];
      test.each(charged)('charges %s', async (_, reserved, charge, available) => {
        await give({ available: 10n, spent: 2n, settled: 1 });
        const write = reserveOf(account, { amount: reserved });
        await opened.store.reserve(write);
        const close = closeOf(account, { entry: write.entry, charge });
        expect(await opened.store.close(close)).toMatchObject({ done: true });
        expect(await item()).toEqual(
          itemOf(account, { available, spent: 2n + charge, settled: 2, last: close.closeRecord }),
        );
      });

      test('keeps every field of its close record', async () => {
        await give({ open: new Map([['call', entryOf()]]) });
        const close = closeOf(account, { entry: entryOf(), charge: 0n });
        const said = { endpoint: 'chat', prompt_tokens: 0, completion_tokens: 7, end: 'completed' };
        const counts = { cached_tokens: 5, cache_write_tokens: 1, cache_write_1h_tokens: 2 };
        const whom = { end_user: 'alice', tags: { team: 'search', env: 'prod' } };
        const closeRecord = {
          ...close.closeRecord,
          ...said,
          ...counts,
          ...whom,
          estimated: true,
          cost: huge,
        };
        await opened.store.close({ ...close, closeRecord });
        expect((await item()).last).toEqual(closeRecord);
      });

      test.each([
        ['frees the place of its key, and leaves the slot counted', false, 3],
        ['releases the slot that it took', true, 2],
      ])('%s', async (_, releaseSlot, left) => {
        await give({ plan: counted(slot(9).key, 2), permits: placed('other') });
        const write = reserveOf(account, { slot: slot(9), permit: { key, max: 2 } });
        await opened.store.reserve(write);
        await opened.store.close(closeOf(account, { entry: write.entry, releaseSlot }));
        const after = await item();
        expect(after.plan).toEqual(counted(slot(9).key, left));
        expect(after.permits).toEqual(placed('other'));
      });

      test.each([
        ['a slot', 'a close that releases it', { releaseSlot: true }],
        ['a place', 'a close', {}],
      ])('frees %s only if the entry names it: %s touches no other counter', async (_, __, wish) => {
        const given = {
          plan: counted(slot(9).key, 2),
          permits: placed('other'),
          rate: rated(minute, 1),
        };
        await give({ ...given, open: new Map([['call', entryOf()]]) });
        await opened.store.close(closeOf(account, { entry: entryOf(), ...wish }));
        expect(await item()).toMatchObject(given);
      });

      test('changes nothing when repeated, and returns its own close record', async () => {
        await give({ available: 10n });
        const { entry } = reserveOf(account, { amount: 6n });
        await opened.store.reserve(reserveOf(account, { amount: 6n }));
        const close = closeOf(account, { entry, charge: 5n });
        await opened.store.close(close);
        const once = await item();
        expect(await opened.store.close(close)).toEqual({ done: false, item: once });
        expect(await item()).toEqual(once);
        expect(once.last?.id).toBe('call');
      });

      test("is rejected after the sweeper's close: the call is charged once", async () => {
        const entry = entryOf({ amount: 6n, input: 2n });
        await give({ available: 4n, open: new Map([['call', entry]]) });
        await opened.store.close(closeOf(account, { entry, charge: entry.input, kind: 'expired' }));
        const expired = await item();
        const late = await opened.store.close(closeOf(account, { entry, charge: 5n }));
        expect(late).toEqual({ done: false, item: expired });
        expect(expired).toMatchObject({ available: 8n, spent: 2n, last: { kind: 'expired' } });
      });

      test.each([
        ['of a call', 'a tombstone', entryOf({ amount: 6n }), entryOf({ tombstone: true })],
        ['of a tombstone', 'a call', entryOf({ tombstone: true }), entryOf({ amount: 6n })],
      ])('%s does not undo %s under the same id', async (_, __, own, standing) => {
        await give({ open: new Map([['call', standing]]) });
        const before = await item();
        const reply = await opened.store.close(closeOf(account, { entry: own }));
        expect(reply).toEqual({ done: false, item: before });
        expect(await item()).toEqual(before);
      });

      test('of an account without an item is rejected', async () => {
        const reply = await opened.store.close(closeOf(account, { entry: entryOf() }));
        expect(reply).toEqual({ done: false, item: undefined });
        expect(await opened.read(account)).toBeUndefined();
      });
    });

    describe('a metered account', () => {
      const metered = entryOf({ amount: 7n, metered: true });

      test('reserves while in debt without using the balance, and counts the charge separately', async () => {
        await opened.put(itemOf('acme', { available: -5n, overdraft: true }));
        expect(await opened.store.reserve({ account: 'acme', id: 'call', entry: metered })).toMatchObject({
          done: true,
          item: { available: -5n, open: new Map([['call', metered]]) },
        });
        expect(
          await opened.store.close(closeOf('acme', { entry: entryOf({ amount: 7n }), charge: 9n })),
        ).toMatchObject({ done: false });
        expect(await opened.store.close(closeOf('acme', { entry: metered, charge: 9n }))).toEqual({
          done: true,
        });
        const item = await opened.read('acme');
        expect(item).toMatchObject({ available: -5n, spent: 9n, metered: 9n, settled: 1, open: new Map() });
        expect(item && findImbalance(item)).toBeUndefined();
      });

      test('creates a counter once, and the first item records that counters exist', async () => {
        await opened.store.create('acme', 70);
        await opened.store.reserve({ account: 'acme', shard: 70, id: 'call', entry: metered });
        await opened.store.create('acme', 70);
        expect(await opened.read('acme')).toMatchObject({ shard: 0, counters: 2_048, open: new Map() });
        expect(await opened.read('acme', 70)).toMatchObject({
          shard: 70,
          open: new Map([['call', metered]]),
        });
      });
    });

    describe('tombstone', () => {
      const stone = entryOf({ tombstone: true, input: 0n });

      test('takes an id beside any number of open entries, and its close leaves nothing', async () => {
        await give({ available: 3n, open: openEntries(150) });
        const before = await item();
        expect(await opened.store.tombstone({ account, id: 'call', entry: stone })).toMatchObject({
          done: true,
        });
        expect((await item()).open.get('call')).toEqual(stone);
        await opened.store.close(closeOf(account, { entry: stone, kind: 'cancelled' }));
        const { last, ...after } = await item();
        expect(last?.kind).toBe('cancelled');
        expect({ ...after, last: undefined }).toEqual({ ...before, settled: 1 });
      });

      test('of an open id is rejected, and returns the entry', async () => {
        const entry = entryOf({ amount: 2n });
        await give({ open: new Map([['call', entry]]) });
        const reply = await opened.store.tombstone({ account, id: 'call', entry: stone });
        expect(reply.done ? undefined : reply.item?.open.get('call')).toEqual(entry);
        expect((await item()).open.get('call')).toEqual(entry);
      });

      test('of an account without an item is rejected, and creates none', async () => {
        const reply = await opened.store.tombstone({ account, id: 'call', entry: stone });
        expect(reply).toEqual({ done: false, item: undefined });
        expect(await opened.read(account)).toBeUndefined();
      });
    });

    describe('renew', () => {
      const until = now + 900;
      test('moves the end of the lease and nothing else', async () => {
        const entry = entryOf({ amount: 2n });
        await give({ open: new Map([['call', entry]]), permits: placed('call') });
        const before = await item();
        expect(await opened.store.renew({ account, id: 'call', entry, until })).toMatchObject({ done: true });
        expect(await item()).toEqual({ ...before, open: new Map([['call', { ...entry, until }]]) });
      });

      test.each([
        ['a closed reservation', new Map()],
        ['a tombstone', new Map([['call', entryOf({ tombstone: true })]])],
      ])('of %s is rejected', async (_, open) => {
        await give({ open });
        const before = await item();
        const reply = await opened.store.renew({ account, id: 'call', entry: entryOf(), until });
        expect(reply).toEqual({ done: false, item: before });
        expect(await item()).toEqual(before);
      });

      test('keeps a queued entry queued', async () => {
        const entry = entryOf({ amount: 2n, queued: true });
        await give({ open: new Map([['call', entry]]) });
        expect(await opened.store.renew({ account, id: 'call', entry, until })).toMatchObject({ done: true });
        expect((await item()).open.get('call')).toEqual({ ...entry, until });
      });

      test('wins over a close that read the old lease, but never over the close of the call itself', async () => {
        const entry = entryOf({ amount: 2n });
        await give({ open: new Map([['call', entry]]) });
        await opened.store.renew({ account, id: 'call', entry, until });
        const close = closeOf(account, { entry, kind: 'expired' });
        expect(await opened.store.close({ ...close, ifNotRenewed: true })).toMatchObject({ done: false });
        expect(await opened.store.close(close)).toMatchObject({ done: true });
      });
    });

    test("a write to another part leaves the account's first item unchanged", async () => {
      await give({ available: 5n });
      const shard = 3;
      const of = { account, shard };
      await opened.put({
        ...itemOf(account, { available: 9n }),
        shard,
        shardCount: 4,
        granted: 0n,
        moved: 9n,
      });
      const before = await item();
      const write = { ...reserveOf(account, { amount: 4n, permit: { key, max: 1 }, shardCount: 4 }), shard };
      expect(await opened.store.reserve(write)).toMatchObject({
        done: true,
        item: { account, shard, available: 5n },
      });
      const { entry } = write;
      await opened.store.renew({ ...of, id: 'call', entry, until: now });
      await opened.store.close({ ...closeOf(account, { entry, charge: 1n }), shard });
      await opened.store.tombstone({ ...of, id: 'late', entry: entryOf({ tombstone: true }) });
      const after = await opened.read(account, shard);
      expect(after).toMatchObject({ account, shard, shardCount: 4, available: 8n, spent: 1n, moved: 9n });
      expect(after && findImbalance(after)).toBeUndefined();
      expect([...(after?.open.keys() ?? [])]).toEqual(['late']);
      expect(await item()).toEqual(before);
    });

    describe('create', () => {
      test('creates an empty item that a reserve can use', async () => {
        await opened.store.create(account);
        expect(await item()).toEqual(itemOf(account, {}));
        const wish = { slot: slot(1), permit: { key, max: 1 }, rate: rate(1, true) };
        expect(await opened.store.reserve(reserveOf(account, wish))).toMatchObject({ done: true });
      });

      test('leaves an existing item unchanged', async () => {
        await give({ available: 10n, open: new Map([['other', entryOf({ amount: 1n })]]) });
        const before = await item();
        await opened.store.create(account);
        expect(await item()).toEqual(before);
      });
    });
  });
}
