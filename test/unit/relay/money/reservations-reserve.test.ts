import { describe, expect, it } from 'vitest';
import { ReservationsRig, slot, tokenPrice } from '../../../support/reservations-rig.ts';
import type { Fault } from '../../../support/rough-quota-store.ts';

const funded = (amount = 1000n): ReservationsRig => {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', amount);
  return rig;
};

describe('a reserve', () => {
  const rough: [string, Fault[]][] = [
    ['throttled for a while', ['busy', 'busy', 'busy']],
    ['done but not answered', ['lost']],
    ['never arrived', ['dropped']],
    ['slower than its retry', [{ kind: 'late', afterMs: 300 }]],
    ['all of these', ['busy', 'dropped', 'lost']],
  ];
  it.each(rough)('is applied exactly once when it was %s', async (_case, faults) => {
    const rig = funded();
    rig.store.meets('reserve', ...faults);
    const { id, entry } = await rig.reserve();
    await rig.clock.run(rig.clock.sleep(1_000));
    expect([...(rig.item?.open ?? [])]).toEqual([[id, entry]]);
    expect(rig.item?.available).toBe(990n);
  });

  it('that meets its own late try uses the payment of that try, not the one requested last', async () => {
    const rig = funded();
    const slots = [slot('free', 1)];
    const holder = await rig.reserve({ slots }, rig.otherReservations());
    // The retry finds the slot used and asks for money; before it arrives, the slot is freed and the first try lands.
    rig.store.meets('reserve', { kind: 'late', afterMs: 30 }, 'fine', { kind: 'taken', afterMs: 40 });
    const freed = rig.clock.sleep(20).then(() => rig.close(holder));
    const [reservation] = await Promise.all([rig.reserve({ slots }), freed]);
    expect(reservation.entry).toMatchObject({ slot: slots[0]?.key, amount: 0n });
    expect(rig.item?.available).toBe(1000n);
    await rig.close(reservation);
    expect(rig.item?.plan.get(slot('free', 1).key)).toBe(0);
  });

  it('that meets its own late try is limited to the money of that try, even if a plan was to pay', async () => {
    const rig = funded(0n);
    const slots = [slot('free', 1)];
    const holder = await rig.reserve({ slots });
    const { id } = holder;
    const closeRecord = { id, kind: 'released' as const, charge: 0n, at: 0 };
    // The slot is seen as used, but is free when the retry comes, for which there is no money yet.
    await rig.clock.run(rig.otherReservations().close(holder, closeRecord, true));
    rig.store.meets('reserve', { kind: 'late', afterMs: 200 }, 'fine', { kind: 'taken', afterMs: 300 });
    const granted = rig.clock.sleep(100).then(() => rig.memory.grant('acme', 1_000_000n));
    const [{ entry, payment }] = await Promise.all([rig.reserve({ slots, price: tokenPrice }), granted]);
    expect(entry).toMatchObject({ slot: '', amount: 120_000n });
    expect(payment).toMatchObject({ amount: 120_000n });
    expect(payment.slot).toBeUndefined();
  });

  it('gives up after 4 tries when other calls keep taking the money, and reserves nothing', async () => {
    const rig = funded(0n);
    const { reserve } = rig.store;
    // Each refusal shows enough money, but each try finds none, because other calls take it in between.
    rig.store.reserve = async (write) => {
      const reply = await reserve(write);
      return reply.done || !reply.item ? reply : { done: false, item: { ...reply.item, available: 10n } };
    };
    await expect(rig.reserve()).rejects.toMatchObject({ message: 'refused: reserved' });
    expect(rig.store.sent).toEqual(['reserve', 'reserve', 'reserve', 'reserve']);
    expect(rig.item?.open.size).toBe(0);
  });
});

describe('a reserve with an unknown outcome', () => {
  it('is cancelled by a tombstone that blocks its id for a late arrival', async () => {
    const rig = funded();
    rig.store.always({ kind: 'late', afterMs: 60_000 }, 'reserve');
    const reservationRequest = rig.reservationRequest({ maxConcurrency: 3, slots: [slot('free', 5)] });
    await expect(rig.reserve(reservationRequest)).rejects.toMatchObject({ name: 'StoreUnavailable' });
    await rig.clock.run(rig.clock.sleep(120_000));
    expect(rig.item).toMatchObject({ available: 1000n, spent: 0n });
    expect(rig.item?.open.get(reservationRequest.need.id)).toMatchObject({
      amount: 0n,
      tombstone: true,
    });
    expect([...(rig.item?.permits ?? []), ...(rig.item?.plan ?? [])]).toEqual([]);
    expect(rig.events).toEqual([]);
  });

  it('rejects the call at once if the cancel gets no reply, and keeps cancelling', async () => {
    const rig = funded();
    rig.store.always('lost', 'reserve').always('dropped', 'tombstone');
    const startMs = rig.clock.now();
    const request = rig.reservationRequest();
    const reserved = rig.reservations.reserve(request);
    await expect(rig.clock.run(reserved)).rejects.toMatchObject({ name: 'StoreUnavailable' });
    expect(rig.clock.now() - startMs).toBeLessThanOrEqual(1_600);
    expect(rig.item?.open.size).toBe(1);
    await rig.clock.run(rig.clock.sleep(20_000));
    rig.store.always('fine', 'tombstone', 'close');
    await rig.clock.run(rig.reservations.awaitCancel(request.need.id));
    expect(rig.item).toMatchObject({ available: 1000n, spent: 0n });
    expect(rig.events).toEqual([]);
  });

  it('that cannot be cancelled within its lease is logged, and the sweeper closes it', async () => {
    const rig = funded();
    rig.store.always('dropped', 'reserve', 'tombstone', 'close');
    const startMs = rig.clock.now();
    const reservationRequest = rig.reservationRequest();
    await expect(rig.reserve(reservationRequest)).rejects.toMatchObject({ name: 'StoreUnavailable' });
    expect(rig.clock.now() - startMs).toBeLessThanOrEqual(60_000);
    expect(rig.events).toEqual([
      { name: 'reserve_unknown', fields: { request_id: reservationRequest.need.id, account: 'acme' } },
    ]);
  });

  it('is dropped soon when many cancels wait, so that an outage does not fill the host', async () => {
    const rig = funded();
    rig.store.always('dropped', 'reserve', 'tombstone');
    const requests = Array.from({ length: 20 }, () => rig.reservationRequest());
    const refused = requests.map((request) => rig.reservations.reserve(request).catch(() => undefined));
    await rig.clock.run(Promise.all(refused));
    const cancelled = (some: typeof requests): Promise<void[]> =>
      rig.clock.run(Promise.all(some.map(({ need }) => rig.reservations.awaitCancel(need.id))));
    await rig.clock.run(rig.clock.sleep(1_600));
    expect(rig.events.map(({ name }) => name)).toEqual(Array.from({ length: 4 }, () => 'reserve_unknown'));
    await cancelled(requests);
    expect(rig.events).toHaveLength(20);
    // The queue of cancels has room again.
    await rig.clock.run(rig.reservations.reserve(rig.reservationRequest()).catch(() => undefined));
    await rig.clock.run(rig.clock.sleep(10_000));
    expect(rig.events).toHaveLength(20);
  });
});
