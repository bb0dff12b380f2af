import { describe, expect, it } from 'vitest';
import { planSplit } from '../../../../shared/billing/shards.ts';
import type { ReserveNeed } from '../../../../shared/billing/reservation.ts';
import { Reservations } from '../../../../shared/relay/money/reservations.ts';
import { SeededRandom } from '../../../simulation/seeded-random.ts';
import { ReservationsRig } from '../../../support/reservations-rig.ts';

const calls = 200;
const log = { request: () => {}, fault: () => {}, event: () => {} };

async function rigOf(parts: number): Promise<ReservationsRig> {
  const rig = new ReservationsRig();
  rig.memory.grant('acme', 1_000_000n);
  const write = planSplit(await rig.memory.read('acme', 1), parts, new Map());
  if (write) await rig.memory.move(write);
  return rig;
}

/** Reserves for parallel calls, each in its own environment; returns how many succeed and why the others fail. */
async function atOnce(rig: ReservationsRig, parts: number, need: Partial<ReserveNeed>) {
  const random = new SeededRandom(parts);
  const { clock, store: quotas, counters } = rig;
  const tries = Array.from({ length: calls }, () =>
    new Reservations({ clock, random, quotas, counters, log }).reserve({
      ...rig.reservationRequest(need),
      shardCount: parts,
    }),
  );
  const outcomes = await clock.run(Promise.allSettled(tries));
  const taken = outcomes.filter(({ status }) => status === 'fulfilled').length;
  const reasons = outcomes.flatMap((each) =>
    each.status === 'rejected' ? [(each.reason as Error).message] : [],
  );
  return { taken, reasons: [...new Set(reasons)].toSorted() };
}

const partCounts = [1, 2, 4, 16, 64];
const limits: [string, Partial<ReserveNeed>, number, string][] = [
  ['calls a minute', { accountRpm: 60 }, 60, 'refused: account_rpm'],
  ['calls a minute, fewer than shards', { accountRpm: 3 }, 3, 'refused: account_rpm'],
  ['calls at once', { accountConcurrency: 60 }, 60, 'refused: open_entries'],
  ['calls at once, fewer than shards', { accountConcurrency: 3 }, 3, 'refused: open_entries'],
];

describe.each(partCounts)('200 parallel calls of an account with %i shards', (parts) => {
  it.each(limits)('use exactly the limit of %s', async (_of, need, limit, reason) => {
    const rig = await rigOf(parts);
    expect(await atOnce(rig, parts, need)).toEqual({ taken: limit, reasons: [reason] });
  });
});

describe.each(partCounts)('crashed calls of an account with %i shards', (parts) => {
  it.each([{ accountConcurrency: 4 }, { maxConcurrency: 4 }])(
    'free the limit %o for others',
    async (need) => {
      const rig = await rigOf(parts);
      expect((await atOnce(rig, parts, need)).taken).toBe(4);
      expect((await atOnce(rig, parts, need)).taken).toBe(0);
      await rig.clock.run(rig.clock.sleep(70_000));
      expect((await atOnce(rig, parts, need)).taken).toBe(4);
    },
  );
});

it('an account at its limit a minute continues in the next minute', async () => {
  const rig = await rigOf(16);
  expect((await atOnce(rig, 16, { accountRpm: 60 })).taken).toBe(60);
  await rig.clock.run(rig.clock.sleep(60_000));
  expect((await atOnce(rig, 16, { accountRpm: 60 })).taken).toBe(60);
});

describe('an account rejected by its limit of', () => {
  const own: [string, Partial<ReserveNeed>, string][] = [
    ['calls at once', { accountConcurrency: 1 }, 'refused: open_entries'],
    ['calls a minute', { accountRpm: 1 }, 'refused: account_rpm'],
    ['tokens a minute', { accountTpm: 1 }, 'refused: account_tpm'],
  ];
  it.each(own)('%s is rejected again for a second without a write', async (_of, need, message) => {
    const rig = await rigOf(1);
    await rig.reserve(need);
    // A place may become free at any moment, so the relay remembers only the second refusal.
    for (let refused = 0; refused < 2; refused += 1)
      await expect(rig.reserve(need)).rejects.toMatchObject({ message });
    const sent = rig.store.sent.length;
    await expect(rig.reserve(need)).rejects.toMatchObject({ message });
    expect(rig.store.sent.length).toBe(sent);
    await rig.clock.run(rig.clock.sleep(1_000));
    await expect(rig.reserve(need)).rejects.toMatchObject({ message });
    expect(rig.store.sent.length).toBeGreaterThan(sent);
  });
});
