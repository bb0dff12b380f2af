/** The contract of the quota store for accounts with several parts. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  planGather,
  planJoin,
  planOverdraftEnd,
  type ShardsWrite,
  planSplit,
  mergeShards,
  type AccountShards,
  planRoom,
} from '../../shared/billing/shards.ts';
import { findImbalance, type QuotaItem } from '../../shared/billing/quota-item.ts';
import { buildLateRow } from '../../shared/billing/ledger-row.ts';
import { closeOf, entryOf, itemOf, minute, reserveOf, slot, type OpenedStore } from './quota-store-rig.ts';

const partsMax = 8;
const limits = new Map([[slot(9).key, 9]]);

export function quotaPartsContract(name: string, open: () => Promise<OpenedStore & AsyncDisposable>): void {
  describe(`the parts of an account ${name}`, () => {
    let opened: OpenedStore & AsyncDisposable;
    let account = '';
    let cases = 0;
    const parts = async (): Promise<AccountShards> => {
      const images = await opened.store.read(account, partsMax, true);
      return images as unknown as AccountShards;
    };
    const whole = async (): Promise<QuotaItem> => mergeShards(await parts());
    const move = (write: ShardsWrite | undefined): Promise<boolean> => {
      if (!write) throw new Error('there is nothing to move');
      return opened.store.move(write);
    };
    /** Splits an account with a balance of 1,000 into four parts. */
    const split = async (given: Partial<QuotaItem> = {}): Promise<AccountShards> => {
      await opened.put(itemOf(account, { available: 1000n, ...given }));
      expect(await move(planSplit(await parts(), 4, limits))).toBe(true);
      return parts();
    };

    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened[Symbol.asyncDispose]());
    beforeEach(() => {
      cases += 1;
      account = `parts ${cases}`;
    });
    afterEach(async () => {
      const images = await parts();
      expect(images.map(findImbalance)).toEqual(images.map(() => undefined));
      if (images.length > 0) expect(mergeShards(images).moved).toBe(0n);
    });

    test('a split divides money and counted plan calls, and writes the number of parts into every part', async () => {
      const images = await split({ available: 1003n, plan: new Map([[slot(9).key, 6]]) });
      expect(images.map(({ shard: part, available }) => [part, available])).toEqual([
        [0, 253n],
        [1, 250n],
        [2, 250n],
        [3, 250n],
      ]);
      expect(images.map(({ plan }) => plan.get(slot(9).key))).toEqual([2, 2, 1, 1]);
      expect(images.map((item) => item.shardCount)).toEqual([4, 4, 4, 4]);
      expect(images[0].highestShardCount).toBe(4);
      expect(await opened.partsWithKey(account)).toBe(4);
    });

    const counts = async () => (await parts()).map(({ rate }) => rate?.count);

    test("the account's minute is divided among new parts, and a join adds it up", async () => {
      const rate = { minute, count: 10, tokens: 100 };
      await split({ rate });
      expect(await counts()).toEqual([10, 3, 3, 2]);
      const write = planJoin(await parts());
      expect(await move(write)).toBe(true);
      expect((await parts())[0].rate).toEqual({ minute, count: 18, tokens: 175 });
    });

    test.each([
      ['counted a call', { minute, count: 2, tokens: 5 }],
      ['had no minute and counts one', undefined],
    ])('a join is rejected if part 0 %s since', async (_, rate) => {
      const [first, second] = await split({ rate });
      await opened.put({ ...second!, rate: { minute, count: 7, tokens: 0 } });
      const write = planJoin(await parts());
      await opened.put({ ...first, rate: { minute, count: 3, tokens: 5 } });
      expect(await move(write)).toBe(false);
      expect((await counts())[0]).toBe(3);
    });

    test('a free plan call moves once to a part that has no share of the slot', async () => {
      const images = await split();
      const two = slot(2);
      const write = planRoom({ images, to: images[3] ?? images[0], slot: two });
      const call = (id: string) =>
        opened.store.reserve(reserveOf(account, { id, shard: 3, shardCount: 4, slot: { ...two, limit: 0 } }));
      expect(await call('before')).toMatchObject({ done: false });
      expect(await move(write)).toBe(true);
      expect(await move(write)).toBe(false);
      expect(await call('first')).toMatchObject({ done: true });
      expect(await call('second')).toMatchObject({ done: false });
      expect((await parts()).map(({ plan }) => plan.get(two.key) ?? 0)).toEqual([1, 0, 0, 0]);
    });

    test('an open entry stays in its part, and its close is written there', async () => {
      const entry = entryOf({ amount: 30n });
      const open = new Map([['call', entry]]);
      const before = await split({ open });
      expect(before[0].open).toEqual(open);
      expect(await opened.store.close(closeOf(account, { entry, charge: 10n }))).toMatchObject({
        done: true,
      });
      expect((await parts())[0]).toMatchObject({ available: 270n, spent: 10n, granted: 1030n });
      expect(await whole()).toMatchObject({ available: 1020n, spent: 10n, granted: 1030n });
    });

    test.each<[string, (item: QuotaItem) => Partial<QuotaItem>]>([
      ['another process split it', () => ({ shardCount: 2 })],
      ['money was taken that it wants to give', () => ({ available: 700n, granted: 700n })],
      ['plan calls were counted beyond the share', () => ({ plan: new Map([[slot(9).key, 8]]) })],
    ])('a split is rejected as a whole if meanwhile %s', async (_, change) => {
      await opened.put(itemOf(account, { available: 1000n, plan: new Map([[slot(9).key, 5]]) }));
      const write = planSplit(await parts(), 4, limits);
      const [first] = await parts();
      const changed = { ...first, ...change(first) };
      await opened.put(changed);
      expect(await move(write)).toBe(false);
      expect(await parts()).toEqual([changed]);
      expect(await opened.partsWithKey(account)).toBeUndefined();
    });

    test('a split succeeds although a call was reserved and counted within the share', async () => {
      await opened.put(itemOf(account, { available: 1000n, plan: new Map([[slot(9).key, 4]]) }));
      const write = planSplit(await parts(), 4, limits);
      await opened.store.reserve(reserveOf(account, { amount: 100n, slot: slot(9) }));
      expect(await move(write)).toBe(true);
      const counts = (await parts()).map(({ plan }) => plan.get(slot(9).key));
      expect(counts).toEqual([2, 1, 1, 1]);
      expect(await whole()).toMatchObject({ available: 900n });
    });

    test('only one of two concurrent splits succeeds', async () => {
      await opened.put(itemOf(account, { available: 1000n }));
      const images = await parts();
      const done = await Promise.all([
        move(planSplit(images, 4, limits)),
        move(planSplit(images, 8, limits)),
      ]);
      expect(done.filter(Boolean)).toHaveLength(1);
      expect((await whole()).available).toBe(1000n);
    });

    test('gathering moves the missing amount into one part, from the richest parts first', async () => {
      const [, , third] = await split();
      expect(await move(planGather(await parts(), third!, 600n))).toBe(true);
      const amounts = (await parts()).map(({ available }) => available);
      expect(amounts).toEqual([0n, 150n, 600n, 250n]);
    });

    test('a gather that finds less money than it read moves nothing', async () => {
      const images = await split();
      const write = planGather(images, images[2]!, 600n);
      await opened.store.reserve({ ...reserveOf(account, { amount: 200n }), shard: 0 });
      expect(await move(write)).toBe(false);
      expect((await parts()).map(({ available }) => available)).toEqual([50n, 250n, 250n, 250n]);
    });

    test('joining a quiet account moves everything to part 0 and keeps the empty parts', async () => {
      await split({ plan: new Map([[slot(9).key, 6]]) });
      expect(await move(planJoin(await parts()))).toBe(true);
      const images = await parts();
      expect(images[0]).toMatchObject({ available: 1000n, shardCount: 1, highestShardCount: 4, moved: 0n });
      expect(images[0].plan.get(slot(9).key)).toBe(6);
      for (const item of images.slice(1)) expect(item).toMatchObject({ available: 0n, shardCount: 1 });
      expect(await opened.partsWithKey(account)).toBe(1);
    });

    test.each<[string, (charge: bigint) => Promise<unknown>]>([
      ['opened a call', () => opened.store.reserve({ ...reserveOf(account, { amount: 9n }), shard: 2 })],
      [
        'opened and closed one',
        async (charge) => {
          const write = { ...reserveOf(account, { amount: 9n }), shard: 2 };
          await opened.store.reserve(write);
          await opened.store.close({ ...closeOf(account, { entry: write.entry, charge }), shard: 2 });
        },
      ],
    ])('a join is rejected if another part %s since', async (_, act) => {
      const images = await split();
      await act(0n);
      expect(await move(planJoin(images))).toBe(false);
      expect((await whole()).available + 9n).toBeGreaterThanOrEqual(1000n);
    });

    test('a joined account is split again into its existing parts', async () => {
      await split();
      await move(planJoin(await parts()));
      expect(await move(planSplit(await parts(), 8, limits))).toBe(true);
      expect((await parts()).map(({ available }) => available)).toEqual(
        Array.from({ length: 8 }, () => 125n),
      );
    });

    test('reads the existing parts in order', async () => {
      await split();
      const images = await opened.store.read(account, 3, false);
      expect(images.map(({ shard: part }) => part)).toEqual([0, 1, 2]);
      expect(await opened.store.read('nobody', 4, true)).toEqual([]);
    });

    describe('an overdraft', () => {
      const marks = async () => (await parts()).map(({ overdraft }) => overdraft ?? false);
      const call = (id: string, part: number, amount: bigint) =>
        opened.store.reserve({ ...reserveOf(account, { id, amount }), shard: part });
      const close = async (part: number, charge: bigint) => {
        const entry = (await parts())[part]?.open.get('call');
        if (!entry) throw new Error('nothing is open');
        return opened.store.close({ ...closeOf(account, { entry, charge }), shard: part });
      };
      /** Returns four parts of 250, one of which owes 150. */
      const overdrawn = async (): Promise<AccountShards> => {
        await split();
        await call('call', 2, 100n);
        expect(await close(2, 400n)).toMatchObject({ done: true });
        return parts();
      };

      test('of one part marks all parts, and then no part pays for a call', async () => {
        await split();
        await call('call', 2, 100n);
        expect(await marks()).toEqual([false, false, false, false]);
        await close(2, 250n);
        expect(await marks()).toEqual([false, false, false, false]);
        await call('call', 2, 0n);
        await close(2, 1n);
        expect((await parts()).map(({ available }) => available)).toEqual([250n, 250n, -1n, 250n]);
        expect(await marks()).toEqual([true, true, true, true]);
        for (const part of [0, 1, 2, 3]) {
          expect(await call('paid', part, 1n)).toMatchObject({ done: false, item: { overdraft: true } });
          expect(await call(`free ${part}`, part, 0n)).toMatchObject({ done: true });
        }
        expect(await whole()).toMatchObject({ available: 749n, spent: 251n });
      });

      test('that is already marked grows with a single write', async () => {
        await overdrawn();
        await call('call', 1, 0n);
        await close(1, 300n);
        expect((await parts()).map(({ available }) => available)).toEqual([250n, -50n, -150n, 250n]);
      });

      test('of the only part leaves it unmarked', async () => {
        await opened.put(itemOf(account, { available: 10n }));
        await call('call', 0, 10n);
        await close(0, 30n);
        expect(await marks()).toEqual([false]);
        expect(await whole()).toMatchObject({ available: -20n });
      });

      test('ends once when the remaining sum is divided, but not if it grew meanwhile', async () => {
        const images = await overdrawn();
        await call('call', 1, 0n);
        const early = planOverdraftEnd(images);
        await close(1, 500n);
        expect(await move(early)).toBe(false);
        const write = planOverdraftEnd(await parts());
        expect(await move(write)).toBe(true);
        expect(await move(write)).toBe(false);
        expect((await parts()).map(({ available }) => available)).toEqual([25n, 25n, 25n, 25n]);
        expect(await marks()).toEqual([false, false, false, false]);
      });

      test('of the whole account is joined, not divided', async () => {
        await overdrawn();
        await call('call', 0, 0n);
        await close(0, 1_000n);
        const images = await parts();
        expect(planOverdraftEnd(images)).toBeUndefined();
        expect(await move(planJoin(images))).toBe(true);
        expect((await parts()).map(({ available }) => available)).toEqual([-400n, 0n, 0n, 0n]);
        expect(await marks()).toEqual([false, false, false, false]);
        expect(await call('paid', 0, 1n)).toMatchObject({ done: false });
      });

      test('marks the parts of a split too, and rejects the split if it occurs meanwhile', async () => {
        const before = await split();
        await call('call', 2, 100n);
        await close(2, 400n);
        expect(await move(planSplit(before, 8, limits))).toBe(false);
        await call('call', 1, 0n);
        await close(1, 2_000n);
        expect(await move(planSplit(await parts(), 8, limits))).toBe(true);
        expect(await marks()).toEqual(Array.from({ length: 8 }, () => true));
      });

      test('by a late charge marks all parts', async () => {
        await split();
        const { closeRecord, entry } = closeOf(account, { entry: entryOf(), charge: 300n });
        const charge = { difference: 299n, row: buildLateRow({ account, entry, closeRecord }, 299n) };
        for (let times = 0; times < 2; times += 1) await opened.store.chargeLate(charge);
        expect((await parts()).map(({ available }) => available)).toEqual([-49n, 250n, 250n, 250n]);
        expect(await marks()).toEqual([true, true, true, true]);
      });
    });

    describe('a late charge', () => {
      const late = (difference: bigint) => {
        const { closeRecord, entry } = closeOf(account, { entry: entryOf(), charge: 30n });
        return { difference, row: buildLateRow({ account, entry, closeRecord }, difference) };
      };

      test.each([29n, -1n])('of %s is charged once, however often it is repeated', async (difference) => {
        await opened.put(itemOf(account, { available: 1000n, spent: 1n, settled: 1 }));
        for (let times = 0; times < 3; times += 1) await opened.store.chargeLate(late(difference));
        await Promise.all(
          [opened.store.chargeLate(late(difference)), opened.store.chargeLate(late(difference))].map(
            (charge) => charge.catch(() => undefined),
          ),
        );
        expect(await whole()).toMatchObject({
          available: 1000n - difference,
          spent: 1n + difference,
          settled: 2,
        });
      });
    });
  });
}
