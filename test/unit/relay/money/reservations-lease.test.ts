import { describe, expect, it } from 'vitest';
import { ReservationsRig } from '../../../support/reservations-rig.ts';

const funded = (): ReservationsRig => {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', 1000n);
  return rig;
};

const one = { maxConcurrency: 1 };

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

  it('is renewed also when the store is throttled for a while or loses replies', async () => {
    const rig = funded();
    rig.store.meets('renew', 'busy', 'busy', 'lost', 'dropped');
    const { reservation, pass, end } = await running(rig);
    await pass(62_000);
    expect(untilMs(rig, reservation.id)).toBeGreaterThan(rig.clock.now() + 50_000);
    await end();
  });

  it('ends with the call, and is not renewed once the reservation is closed', async () => {
    const rig = funded();
    const { reservation, pass, end } = await running(rig);
    await rig.close(reservation, 1n);
    await pass(200_000);
    expect(rig.store.sent).toEqual(['reserve', 'close', 'renew']);
    expect(rig.item?.open.size).toBe(0);
    await end();
  });

  it('is not renewed beyond the time of the host', async () => {
    const rig = funded();
    const { end } = await running(rig);
    await rig.clock.run(rig.clock.sleep(3_600_000));
    expect(rig.store.sent.filter((operation) => operation === 'renew')).toHaveLength(10);
    await end();
  });
});

describe('the place of a crashed call', () => {
  it('counts until its lease ends, then goes to the next call, once', async () => {
    const rig = funded();
    const crashed = await rig.reserve(one);
    await rig.clock.run(rig.clock.sleep(59_000));
    await expect(rig.reserve(one)).rejects.toMatchObject({ message: 'refused: concurrency' });
    await rig.clock.run(rig.clock.sleep(10_000));
    const next = await rig.reserve(one);
    expect(rig.item?.places.get('key1')).toEqual(new Set([next.id]));
    await expect(rig.reserve(one)).rejects.toMatchObject({ message: 'refused: concurrency' });
    // It was not dead: its close takes nobody else's place.
    await rig.close(crashed, 4n);
    expect(rig.item?.places.get('key1')).toEqual(new Set([next.id]));
    expect(rig.item).toMatchObject({ spent: 4n, settled: 1 });
  });

  it('is not freed while the call renews its lease', async () => {
    const rig = funded();
    const { pass, end } = await running(rig, one);
    await pass(300_000);
    await expect(rig.reserve(one)).rejects.toMatchObject({ message: 'refused: concurrency' });
    await end();
  });

  it('is freed also when a version before parts closed the call and left it', async () => {
    const rig = funded();
    const places = new Map([['key1', new Set(['gone'])]]);
    rig.memory.items.set('acme', { ...rig.item!, places });
    const { id } = await rig.reserve(one);
    expect(rig.item?.places.get('key1')).toEqual(new Set([id]));
  });
});
