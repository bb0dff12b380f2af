import { describe, expect, it } from 'vitest';
import { joinWrite, splitWrite } from '../../../../shared/billing/shards.ts';
import { ReservationsRig, callPrice, slot } from '../../../support/reservations-rig.ts';

const limits = new Map([[slot('free', 6).key, 6]]);

/** An account of 1,000, split into so many parts. */
async function splitRig(parts = 4, available = 1000n): Promise<ReservationsRig> {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', available);
  const write = splitWrite(await rig.memory.read('acme', 1), parts, limits);
  expect(write && (await rig.memory.move(write))).toBe(true);
  return rig;
}

const whole = (rig: ReservationsRig) => rig.memory.whole('acme');
/** Costs so much, as a price per call. */
const costs = (amount: bigint) => ({ price: { ...callPrice, perCall: amount * 1_000n } });

describe('a call of an account with parts', () => {
  it('takes one write when it knows their number', async () => {
    const rig = await splitRig();
    const request = { ...rig.reservationRequest(), parts: 4 };
    const { part } = await rig.reserve(request);
    expect(part).toBe(2);
    expect(rig.store.sent).toEqual(['reserve']);
  });

  it('finds the parts when it knows of none, and is closed in the one that it took', async () => {
    const rig = await splitRig();
    const reservation = await rig.reserve({ slots: [slot('free', 6)] });
    await rig.close(reservation, 0n, 'settled');
    expect(reservation.part).toBe(2);
    await rig.reserve({ slots: [slot('free', 6)] });
    expect(whole(rig)).toMatchObject({ settled: 1, plan: new Map([[slot('free', 6).key, 2]]) });
  });

  it('starts over on part 0 when it knows of more parts than there are', async () => {
    const rig = new ReservationsRig();
    rig.memory.grant('acme', 1000n);
    const { part, entry } = await rig.reserve({ ...rig.reservationRequest(), parts: 8 });
    expect([part, entry.amount]).toEqual([0, 10n]);
    expect(rig.store.sent).toEqual(['reserve', 'reserve']);
  });

  it('goes to a part that has enough, after one read', async () => {
    const rig = await splitRig();
    await rig.reserve({ ...rig.reservationRequest(costs(240n)), parts: 4 });
    const second = await rig.reserve({ ...rig.reservationRequest(costs(240n)), parts: 4 });
    expect(second.part).not.toBe(2);
    expect(rig.store.sent).toEqual(['reserve', 'reserve', 'read', 'reserve']);
  });

  it('gathers what only the sum has, in one transaction', async () => {
    const rig = await splitRig();
    const { entry } = await rig.reserve({ ...rig.reservationRequest(costs(700n)), parts: 4 });
    expect(entry.amount).toBe(700n);
    expect(rig.store.sent).toEqual(['reserve', 'read', 'move', 'reserve']);
    expect(whole(rig)).toMatchObject({ available: 300n, moved: 0n });
  });

  it('is refused by the sum alone, then for a second without a write', async () => {
    const rig = await splitRig();
    const dear = () => ({ ...rig.reservationRequest(costs(1001n)), parts: 4 });
    await expect(rig.reserve(dear())).rejects.toMatchObject({ message: 'refused: quota' });
    const sent = rig.store.sent.length;
    await expect(rig.reserve(dear())).rejects.toMatchObject({ message: 'refused: quota' });
    expect(rig.store.sent.length).toBe(sent);
  });

  it('is refused for now while calls hold what it needs', async () => {
    const rig = await splitRig();
    await rig.reserve({ ...rig.reservationRequest(costs(700n)), parts: 4 });
    const request = { ...rig.reservationRequest(costs(400n)), parts: 4 };
    await expect(rig.reserve(request)).rejects.toMatchObject({ message: 'refused: reserved' });
  });

  it('uses every call of a plan entry over all parts, and no more', async () => {
    const rig = await splitRig();
    const slots = [slot('free', 6)];
    const paid = [];
    for (let call = 0; call < 9; call += 1)
      paid.push((await rig.reserve({ ...rig.reservationRequest({ slots }), parts: 4 })).entry.slot !== '');
    expect(paid.filter(Boolean)).toHaveLength(6);
    expect(paid.slice(6)).toEqual([false, false, false]);
  });

  it('uses every place of its key over all parts, and no more', async () => {
    const rig = await splitRig();
    const request = () => ({ ...rig.reservationRequest({ maxConcurrency: 3 }), parts: 4 });
    for (let call = 0; call < 3; call += 1) await rig.reserve(request());
    await expect(rig.reserve(request())).rejects.toMatchObject({ message: 'refused: concurrency' });
    await rig.clock.run(rig.clock.sleep(70_000));
    await rig.reserve(request());
    expect(whole(rig)?.places.get('key1')?.size).toBe(3);
  });

  it('is refused by its budget, whatever part it meets', async () => {
    const rig = await splitRig();
    const counter = { key: 'key1', period: '2026-11-21', expires: 0 };
    const budgetOf = (call: string) => ({ counter, call, most: 15n, resetsAtMs: 0 });
    await rig.reserve({ ...rig.reservationRequest(), parts: 4, budget: budgetOf('first') });
    const next = { ...rig.reservationRequest(), parts: 4, budget: budgetOf('next') };
    await expect(rig.reserve(next)).rejects.toMatchObject({ message: 'refused: budget' });
    expect(rig.counters.budgets.get('key1#2026-11-21')).toEqual({ used: 10n, running: 1 });
  });

  it.each(['accountRpm', 'accountTpm'])('finds the part that has a share in a small %s', async (limit) => {
    const rig = await splitRig();
    const request = () => ({ ...rig.reservationRequest({ [limit]: 1 }), parts: 4 });
    expect((await rig.reserve(request())).part).toBe(0);
    expect(rig.store.sent).toEqual(['read', 'reserve']);
    await expect(rig.reserve(request())).rejects.toMatchObject({
      message: expect.stringContaining('account_'),
    });
  });

  it.each([
    ['has a share of the plan that was used up', 6],
    ['has no share of the plan', 2],
  ])(
    'is paid by the plan while that has room, also in the only part of its key, which %s',
    async (_, limit) => {
      const rig = await splitRig();
      const slots = [slot('free', limit)];
      const paid = [];
      for (let call = 0; call < limit + 2; call += 1) {
        const need = { slots, key: '000000030000', maxConcurrency: 1 };
        const reservation = await rig.reserve({ ...rig.reservationRequest(need), parts: 4 });
        expect(reservation.part).toBe(3);
        paid.push(reservation.entry.slot !== '');
        await rig.close(reservation, reservation.entry.amount, 'settled');
      }
      expect(paid.filter(Boolean)).toHaveLength(limit);
      expect(whole(rig)).toMatchObject({ spent: 20n, plan: new Map([[slots[0]?.key, limit]]) });
    },
  );

  it('stays in the part in which a try of it may still be applied', async () => {
    const rig = await splitRig();
    rig.store.meets('reserve', { kind: 'late', afterMs: 3_000 });
    const { part, id } = await rig.reserve({ ...rig.reservationRequest(costs(700n)), parts: 4 });
    expect(part).toBe(2);
    await rig.clock.run(rig.clock.sleep(10_000));
    const holders = [...rig.memory.items.values()].filter(({ open }) => open.has(id));
    expect(holders.map((item) => item.part)).toEqual([2]);
    expect(whole(rig)?.available).toBe(300n);
  });

  it('takes no share of a part that is not in use any more', async () => {
    const rig = await splitRig();
    const images = await rig.memory.read('acme', 4);
    const write = joinWrite([...images]);
    expect(write && (await rig.memory.move(write))).toBe(true);
    rig.store.meets('reserve', 'dropped');
    const request = { ...rig.reservationRequest({ slots: [slot('free', 6)] }), parts: 4 };
    await expect(rig.reserve(request)).rejects.toMatchObject({ status: 503 });
    expect(whole(rig)?.plan.get(slot('free', 6).key) ?? 0).toBe(0);
  });
});

describe('an account that gets busy', () => {
  it('is split by the call that sees the ninth open entry, which does not wait for it', async () => {
    const rig = new ReservationsRig();
    rig.memory.grant('acme', 100_000n);
    for (let call = 0; call < 9; call += 1) await rig.reserve();
    await rig.clock.run(rig.clock.sleep(100));
    expect(rig.item).toMatchObject({ parts: 2, made: 2 });
    expect(rig.memory.parts.get('acme')).toBe(2);
    expect(whole(rig)).toMatchObject({ available: 99_910n, moved: 0n });
    expect(rig.events.map(({ name }) => name)).toEqual(['account_split']);
  });

  it('is not split so far that its parts hold less than some reserves', async () => {
    const rig = new ReservationsRig();
    rig.memory.grant('acme', 200n);
    for (let call = 0; call < 9; call += 1) await rig.reserve();
    await rig.clock.run(rig.clock.sleep(100));
    expect(rig.item?.parts).toBe(1);
  });
});
