import { describe, expect, it } from 'vitest';
import { ReservationsRig, slot } from '../../../support/reservations-rig.ts';

const late = { kind: 'late', afterMs: 500 } as const;
const funded = (): ReservationsRig => {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', 1000n);
  return rig;
};

/** Open entries that still reserve money. */
const held = (rig: ReservationsRig): unknown[] =>
  [...(rig.item?.open.values() ?? [])].filter((entry) => !entry.tombstone);

describe('a first reserve write that lands after its call ended', () => {
  it('opens no entry after the close', async () => {
    const rig = funded();
    rig.store.meets('reserve', late);
    const reservation = await rig.reserve({ maxConcurrency: 1, slots: [slot('free', 5)] });
    await rig.close(reservation);
    await rig.clock.run(rig.clock.sleep(1_000));
    expect(held(rig)).toEqual([]);
    expect(rig.item).toMatchObject({ available: 1000n, settled: 1 });
    expect(rig.item?.permits.size).toBe(0);
    expect(rig.item?.plan.get(slot('free', 5).key)).toBe(0);
  });

  it('is closed without a charge if it lands between the close and the guard', async () => {
    const rig = funded();
    rig.store.meets('reserve', late).meets('tombstone', { kind: 'taken', afterMs: 1_000 });
    const reservation = await rig.reserve();
    await rig.close(reservation, 4n);
    expect(held(rig)).toEqual([]);
    expect(rig.item).toMatchObject({ available: 996n, spent: 4n });
  });

  it('is not repeated by an environment that was paused until the write expired', async () => {
    const rig = funded();
    rig.store.meets('reserve', 'lost');
    const reservationRequest = rig.reservationRequest();
    reservationRequest.deadlineMs = rig.clock.now() + 1_000;
    // The pause before the repeat takes an hour.
    const sleep = rig.clock.sleep.bind(rig.clock);
    rig.clock.sleep = () => sleep(3_600_000);
    await expect(rig.reserve(reservationRequest)).rejects.toMatchObject({
      status: 503,
      reason: 'reserve_out_of_time',
    });
    expect(rig.store.sent.filter((operation) => operation === 'reserve')).toHaveLength(1);
  });
});
