import { describe, expect, it } from 'vitest';
import { ReservationsRig, slot, tokenPrice } from '../../../support/reservations-rig.ts';

const funded = (amount = 1000n): ReservationsRig => {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', amount);
  return rig;
};

/** 20 tokens in at most, 100 out at most, 1,000 nano-yuan each: up to 120,000. */
const tokens = { price: tokenPrice };

describe('the last known state of an account', () => {
  it('rejects for a missing place only after two such refusals; a refusal for money does not count', async () => {
    const rig = funded();
    const other = rig.otherReservations();
    const limited = { accountConcurrency: 1 };
    const full = { message: 'refused: open_entries' };
    await expect(rig.reserve(tokens)).rejects.toMatchObject({ message: 'refused: quota' });
    const first = await rig.reserve(limited, other);
    await expect(rig.reserve(limited)).rejects.toMatchObject(full);
    const closeRecord = { id: first.id, kind: 'released', charge: 0n, at: 1 } as const;
    await rig.clock.run(other.close(first, closeRecord, true));
    await rig.reserve(limited);
    // After two refusals in a row the next call is rejected without a write.
    await expect(rig.reserve(limited)).rejects.toMatchObject(full);
    await expect(rig.reserve(limited)).rejects.toMatchObject(full);
    const sent = rig.store.sent.length;
    await expect(rig.reserve(limited)).rejects.toMatchObject(full);
    expect(rig.store.sent).toHaveLength(sent);
  });

  it('saves useless tries: with used-up plan entries the next call needs one write', async () => {
    const rig = funded();
    const slots = [slot('a', 1), slot('b', 1)];
    for (let call = 0; call < 3; call += 1) await rig.reserve({ slots });
    const sent = rig.store.sent.length;
    for (let call = 0; call < 3; call += 1) expect((await rig.reserve({ slots })).entry.slot).toBe('');
    expect(rig.store.sent.length - sent).toBe(3);
  });
});

describe('a rate limit in environments with different clocks', () => {
  it('counts in the later minute, so it neither doubles the limit nor rejects calls below it', async () => {
    const rig = funded();
    const nowMs = rig.clock.now();
    await rig.reserve({ accountRpm: 3, nowMs: nowMs + 60_000 }, rig.otherReservations());
    const behind = await rig.reserve({ accountRpm: 3, nowMs });
    expect(behind.item?.rate?.count).toBe(2);
    await rig.reserve({ accountRpm: 3, nowMs });
    await expect(rig.reserve({ accountRpm: 3, nowMs })).rejects.toMatchObject({
      message: 'refused: account_rpm',
    });
    expect(rig.item?.rate).toEqual({ minute: Math.floor(nowMs / 60_000) + 1, count: 3, tokens: 30 });
  });
});
