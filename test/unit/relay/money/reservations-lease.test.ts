import { describe, expect, it } from 'vitest';
import { ReservationsRig } from '../../../support/reservations-rig.ts';

const funded = (): ReservationsRig => {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', 1000n);
  return rig;
};

/** A call that renews its lease until it is closed. */
async function running(rig: ReservationsRig, need = {}) {
  const reservation = await rig.reserve(need);
  const ended = new AbortController();
  const renewed = rig.reservations.renewUntil(reservation, ended.signal);
  const pass = (milliseconds: number): Promise<void> => rig.clock.run(rig.clock.sleep(milliseconds));
  const end = async (): Promise<void> => {
    ended.abort();
    await rig.clock.run(renewed);
  };
  return { reservation, pass, end };
}

const untilMs = (rig: ReservationsRig, id: string): number => (rig.item?.open.get(id)?.until ?? 0) * 1000;

describe('the lease of a call', () => {
  it('costs no write in the first minute, then one a minute', async () => {
    const rig = funded();
    const { reservation, pass, end } = await running(rig);
    await pass(57_000);
    expect(rig.store.sent).toEqual(['reserve']);
    await pass(180_000);
    expect(rig.store.sent).toEqual(['reserve', 'renew', 'renew', 'renew', 'renew']);
    expect(untilMs(rig, reservation.id)).toBeGreaterThan(rig.clock.now());
    await end();
    expect(rig.clock.pendingTimers).toBe(0);
  });
});
