import { expect, test } from 'vitest';
import { RetryBudget } from '../../../shared/adapters/aws/aws-calls.ts';
import { formatPrice, type Price } from '../../../shared/billing/price.ts';
import type { ReservationRequest } from '../../../shared/relay/money/open-reservation.ts';
import { Reservations } from '../../../shared/relay/money/reservations.ts';
import type { QuotaStore } from '../../../shared/relay/ports/money-stores.ts';
import { StoreUnavailable } from '../../../shared/relay/ports/store-errors.ts';
import { MemoryQuotaStore } from '../../support/memory-quota-store.ts';
import { SeededRandom } from '../seeded-random.ts';
import { EventClock } from './event-clock.ts';

// Virtual time passes while a file is loaded.
await import('../../../shared/relay/money/late-writes.ts');

const callsPerSecond = 25;
const secondsPerCall = 2;
const downMs = { from: 10_000, to: 40_000 };
const endMs = 50_000;
const hold = 2_000n;
const price: Price = { type: 'times-billing', rule: 1, perCall: hold * 1_000n };

interface Result {
  /** Requests a second to the store before the outage. */
  well: number;
  /** Requests a second while the store failed all of them: settles, and calls that were then rejected. */
  down: { settles: number; others: number };
  served: number;
  refused: number;
  events: Map<string, number>;
  charged: bigint;
  due: bigint;
  open: number;
}

/**
 * One process whose store fails every request for half a minute, 20 ms after it. Other calls continue, and more arrive.
 */
async function outage(budget: RetryBudget | undefined): Promise<Result> {
  const clock = new EventClock();
  const startMs = clock.now();
  const random = new SeededRandom(7);
  const memory = new MemoryQuotaStore();
  const sent: { name: string; atMs: number }[] = [];
  const events = new Map<string, number>();
  const now = (): number => clock.now() - startMs;
  const quotas = new Proxy<QuotaStore>(memory, {
    get: (store, name: keyof QuotaStore) => async (write: never) => {
      sent.push({ name, atMs: now() });
      await clock.sleep(20);
      if (now() >= downMs.from && now() < downMs.to) throw new StoreUnavailable('down');
      const reply = await (store[name] as (given: never) => Promise<unknown>)(write);
      budget?.give(0);
      return reply;
    },
  });
  const log = {
    request: () => {},
    fault: (_id: string, error: unknown) => {
      if (!(error instanceof StoreUnavailable)) throw error;
    },
    event: (name: string) => void events.set(name, (events.get(name) ?? 0) + 1),
  };
  const counters = {} as never;
  const reservations = new Reservations({ clock, random, quotas, counters, log, repeats: budget });
  let [calls, served, refused, due] = [0, 0, 0, 0n];
  const call = async (): Promise<void> => {
    calls += 1;
    const account = `account-${calls % 500}`;
    const request = requestOf(account, String(calls).padStart(26, '0'), clock.now());
    try {
      const reservation = await reservations.reserve(request);
      served += 1;
      await clock.sleep(secondsPerCall * 1_000);
      const { id } = reservation;
      due += hold;
      await reservations.close(reservation, { id, kind: 'settled', charge: hold, at: 0 }, false);
    } catch (error) {
      expect(error).toBeInstanceOf(StoreUnavailable);
      refused += 1;
      await reservations.awaitCancel(request.need.id);
    }
  };
  for (let account = 0; account < 500; account += 1) memory.grant(`account-${account}`, 1_000_000n);
  for (let atMs = 0; atMs < endMs; atMs += 1_000 / callsPerSecond) clock.after(atMs, () => void call());
  await clock.run(startMs + endMs + 120_000);
  const sentIn = (from: number, to: number, isWanted: (name: string) => boolean): number =>
    Math.round(
      sent.filter(({ name, atMs }) => atMs >= from && atMs < to && isWanted(name)).length /
        ((to - from) / 1_000),
    );
  const items = [...memory.items.values()];
  return {
    well: sentIn(secondsPerCall * 1_000, downMs.from, () => true),
    down: {
      settles: sentIn(downMs.from, downMs.to, (name) => name === 'close'),
      others: sentIn(downMs.from, downMs.to, (name) => name !== 'close'),
    },
    served,
    refused,
    events,
    charged: items.reduce((sum, item) => sum + item.granted - item.available, 0n),
    due,
    open: items.reduce(
      (sum, item) => sum + [...item.open.values()].filter(({ tombstone }) => !tombstone).length,
      0,
    ),
  };
}

function requestOf(account: string, id: string, nowMs: number): ReservationRequest {
  const estimate = {
    inputTokens: 1,
    inputTokensMax: 1,
    n: 1,
    outputTokensMax: 1,
    outputTokensLeast: 1,
    reservesFully: true,
  };
  const key = 'k';
  return {
    account,
    deadlineMs: nowMs + 600_000,
    need: { id, price, slots: [], estimate, key, nowMs, reservesNothing: false },
    entry: { input: 3n, key, model: 'm', price: formatPrice(price), official: false },
    createRefusal: (reason) => Promise.reject(new Error(reason.reason)),
  };
}

test('refused calls hardly increase the requests to a failed store, and every settle succeeds', async () => {
  const [without, within] = [await outage(undefined), await outage(new RetryBudget())];
  if (process.env['PRINT']) console.log(without, within);
  for (const run of [without, within]) {
    expect(run.charged).toBe(run.due);
    expect(run.open).toBe(0);
    expect(run.events.get('settle_lost')).toBeUndefined();
    expect(run.served + run.refused).toBe((endMs / 1_000) * callsPerSecond);
  }
  expect(without.down.others).toBeGreaterThan(8 * without.well);
  expect(within.down.others).toBeLessThan(2 * within.well);
  // Calls that arrive after the outage are served as before.
  expect(within.served).toBeGreaterThanOrEqual(without.served - 2 * callsPerSecond);
});
