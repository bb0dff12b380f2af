import { describe, expect, it } from 'vitest';
import { planJoin, planSplit } from '../../../../shared/billing/shards.ts';
import { ReservationsRig, callPrice, slot } from '../../../support/reservations-rig.ts';

const limits = new Map([[slot('free', 6).key, 6]]);

/** An account with a balance of 1,000, split into this many shards. */
async function splitRig(parts = 4, available = 1000n): Promise<ReservationsRig> {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', available);
  const write = planSplit(await rig.memory.read('acme', 1), parts, limits);
  expect(write && (await rig.memory.move(write))).toBe(true);
  return rig;
}

const whole = (rig: ReservationsRig) => rig.memory.whole('acme');
/** A price of this much per call. */
const costs = (amount: bigint) => ({ price: { ...callPrice, perCall: amount * 1_000n } });

describe('a call of an account with shards', () => {
  it('gathers the amount from several shards in one transaction', async () => {
    const rig = await splitRig();
    const { entry } = await rig.reserve({ ...rig.reservationRequest(costs(700n)), shardCount: 4 });
    expect(entry.amount).toBe(700n);
    expect(rig.store.sent).toEqual(['reserve', 'read', 'move', 'reserve']);
    expect(whole(rig)).toMatchObject({ available: 300n, moved: 0n });
  });

  it('uses every call of a plan entry over all shards, and no more', async () => {
    const rig = await splitRig();
    const slots = [slot('free', 6)];
    const paid = [];
    for (let call = 0; call < 9; call += 1)
      paid.push(
        (await rig.reserve({ ...rig.reservationRequest({ slots }), shardCount: 4 })).entry.slot !== '',
      );
    expect(paid.filter(Boolean)).toHaveLength(6);
    expect(paid.slice(6)).toEqual([false, false, false]);
  });

  it.each([
    ['has used up its share of the plan', 6],
    ['has no share of the plan', 2],
  ])('is paid by the plan while slots are left, even if the only shard of its key %s', async (_, limit) => {
    const rig = await splitRig();
    const slots = [slot('free', limit)];
    const paid = [];
    for (let call = 0; call < limit + 2; call += 1) {
      const need = { slots, key: '000000030000', maxConcurrency: 1 };
      const reservation = await rig.reserve({ ...rig.reservationRequest(need), shardCount: 4 });
      expect(reservation.shard).toBe(3);
      paid.push(reservation.entry.slot !== '');
      await rig.close(reservation, reservation.entry.amount, 'settled');
    }
    expect(paid.filter(Boolean)).toHaveLength(limit);
    expect(whole(rig)).toMatchObject({ spent: 20n, plan: new Map([[slots[0]?.key, limit]]) });
  });

  it('stays in the shard where an earlier try may still be applied', async () => {
    const rig = await splitRig();
    rig.store.meets('reserve', { kind: 'late', afterMs: 3_000 });
    const { shard: part, id } = await rig.reserve({ ...rig.reservationRequest(costs(700n)), shardCount: 4 });
    expect(part).toBe(2);
    await rig.clock.run(rig.clock.sleep(10_000));
    const holders = [...rig.memory.items.values()].filter(({ open }) => open.has(id));
    expect(holders.map((item) => item.shard)).toEqual([2]);
    expect(whole(rig)?.available).toBe(300n);
  });

  it('stays in that shard even while the account is overdrawn, evened out and overdrawn again', async () => {
    const rig = await splitRig(2, 3000n);
    const owes = (of: [bigint, bigint], overdraft: boolean | undefined): void => {
      for (const [part, available] of of.entries()) {
        const name = part === 0 ? 'acme' : 'acme#1';
        const item = rig.memory.items.get(name);
        if (!item) continue;
        const moved = item.moved + available - item.available;
        rig.memory.items.set(name, { ...item, moved, available, overdraft });
      }
    };
    owes([3100n, -100n], true);
    const { read, reserve } = rig.store;
    rig.store.read = (...asked) => {
      if (rig.store.sent.includes('move')) owes([3100n, -100n], true);
      return read(...asked);
    };
    rig.store.reserve = (write) => {
      if (rig.store.sent.includes('move')) owes([1500n, 1500n], undefined);
      return reserve(write);
    };
    rig.store.meets('reserve', { kind: 'late', afterMs: 3_000 });
    const request = { ...rig.reservationRequest(costs(700n)), shardCount: 2 };
    await expect(rig.reserve(request)).rejects.toThrow('refused: reserved');
    owes([1500n, 1500n], undefined);
    await rig.clock.run(rig.clock.sleep(10_000));
    const holders = [...rig.memory.items.values()].filter(({ open }) => open.get(request.need.id)?.amount);
    expect([holders, whole(rig)?.available]).toEqual([[], 3000n]);
  });

  it('takes no plan share from a shard that is no longer in use', async () => {
    const rig = await splitRig();
    const images = await rig.memory.read('acme', 4);
    const write = planJoin([...images]);
    expect(write && (await rig.memory.move(write))).toBe(true);
    rig.store.meets('reserve', 'dropped');
    const request = { ...rig.reservationRequest({ slots: [slot('free', 6)] }), shardCount: 4 };
    await expect(rig.reserve(request)).rejects.toMatchObject({ status: 503 });
    expect(whole(rig)?.plan.get(slot('free', 6).key) ?? 0).toBe(0);
  });
});

describe('a busy account', () => {
  it('is split by the call that sees the ninth open entry, without a wait', async () => {
    const rig = new ReservationsRig();
    rig.memory.grant('acme', 100_000n);
    for (let call = 0; call < 9; call += 1) await rig.reserve();
    await rig.clock.run(rig.clock.sleep(100));
    expect(rig.item).toMatchObject({ shardCount: 2, highestShardCount: 2 });
    expect(rig.memory.parts.get('acme')).toBe(2);
    expect(whole(rig)).toMatchObject({ available: 99_910n, moved: 0n });
    expect(rig.events.map(({ name }) => name)).toEqual(['account_split']);
  });
});
