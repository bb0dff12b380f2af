import { describe, expect, it } from 'vitest';
import type { ReserveNeed } from '../../../../shared/billing/reservation.ts';
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
  it('needs no write in the first minute, then one a minute', async () => {
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

describe('the place of a crashed call', () => {
  const limits: [string, Partial<ReserveNeed>, string][] = [
    ['a key', { maxConcurrency: 1 }, 'refused: concurrency'],
    ['an account', { accountConcurrency: 1 }, 'refused: open_entries'],
  ];
  it.each(limits)(
    'of %s counts until its lease ends, then goes to one other call',
    async (_, one, message) => {
      const rig = funded();
      const pass = (milliseconds: number): Promise<void> => rig.clock.run(rig.clock.sleep(milliseconds));
      const isFull = (): Promise<void> => expect(rig.reserve(one)).rejects.toMatchObject({ message });
      const crashed = await rig.reserve(one);
      await pass(59_000);
      await isFull();
      await pass(10_000);
      const next = await rig.reserve(one);
      await isFull();
      // The first call was alive after all: its close must not free the place of another call.
      await rig.close(crashed, 4n);
      await isFull();
      expect(rig.item).toMatchObject({ spent: 4n, settled: 1 });
      await rig.close(next, 0n);
      expect(rig.item?.permits.size).toBe(0);
      await rig.reserve(one);
    },
  );

  it('counts again when its call renews the lease', async () => {
    const rig = funded();
    const one = { maxConcurrency: 1 };
    const { account, shard: part, id, entry } = await rig.reserve(one);
    await rig.clock.run(rig.clock.sleep(70_000));
    const until = rig.clock.now() / 1000 + 60;
    await rig.memory.renew({ account, shard: part, id, entry, until });
    await expect(rig.reserve(one)).rejects.toMatchObject({ message: 'refused: concurrency' });
  });
});
