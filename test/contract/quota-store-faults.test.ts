import * as fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { formatPrice, type Price } from '../../shared/billing/price.ts';
import { findImbalance, type CloseRecord, type QuotaItem } from '../../shared/billing/quota-item.ts';
import type { Reservation, ReservationRequest } from '../../shared/relay/money/open-reservation.ts';
import { Reservations } from '../../shared/relay/money/reservations.ts';
import { StoreUnavailable } from '../../shared/relay/ports/store-errors.ts';
import { refuse } from '../../shared/relay/http/refusal.ts';
import { createSweeper } from '../../shared/relay/jobs/sweeper.ts';
import { slowTestMs } from '../support/emulator.ts';
import { noRegistry, scanOf } from '../support/whole-table.ts';
import { recordedLog, type RecordedLog } from '../unit/adapters/telemetry/recorded-log.ts';
import { MemoryKeyCounters } from '../support/memory-key-counters.ts';
import { FaultyWire, QuickClock, type Fault } from './faulty-wire.ts';
import { openDynamoStore } from './quota-store-dynamo.ts';
import { entryOf, itemOf } from './quota-store-rig.ts';

const price: Price = { type: 'times-billing', rule: 1, perCall: 10_000n };
/** The price of every call, in nano-yuan: each call reserves and costs it. */
const cost = 10n;

let dynamo: Awaited<ReturnType<typeof openDynamoStore>>;
let faulty: FaultyWire;
let isOpen = false;
let clock: QuickClock;
let log: RecordedLog;
let reservations: Reservations;
let account = '';
let accounts = 0;

beforeAll(async () => {
  dynamo = await openDynamoStore();
});
afterAll(() => dynamo[Symbol.asyncDispose]());
afterEach(end);

async function begin(available = 100n): Promise<void> {
  await end();
  account = `account ${(accounts += 1)}`;
  await dynamo.put(itemOf(account, { available }));
  faulty = await FaultyWire.open(dynamo.endpoint);
  isOpen = true;
  clock = new QuickClock();
  log = recordedLog();
  reservations = new Reservations({
    clock,
    random: { next: () => 0.9 },
    quotas: faulty.store,
    counters: new MemoryKeyCounters(),
    log,
  });
}

/** The store is unreachable, so cancel entries that the attempts may have left. */
async function refused(): Promise<void> {
  const request = reservationRequest();
  await expect(reservations.reserve(request)).rejects.toThrow(StoreUnavailable);
  await reservations.awaitCancel(request.need.id);
}

async function end(): Promise<void> {
  if (isOpen) await faulty[Symbol.asyncDispose]();
  isOpen = false;
}

function reservationRequest(id = 'call'): ReservationRequest {
  const need = {
    id,
    price,
    slots: [],
    estimate: {
      inputTokens: 1,
      inputTokensMax: 1,
      n: 1,
      outputTokensMax: 1,
      outputTokensLeast: 64,
      reservesFully: true,
    },
    key: '0123456789ab',
    nowMs: clock.now(),
    reservesNothing: false,
  };
  const entry = { input: 3n, key: need.key, model: 'm', price: formatPrice(price), official: false };
  return {
    account,
    need,
    deadlineMs: clock.now() + 5_000,
    entry,
    createRefusal: async () => refuse('insufficient_quota', 'refused'),
  };
}

function settle(reservation: Reservation): Promise<void> {
  const { id } = reservation;
  const closeRecord: CloseRecord = { id, kind: 'settled', charge: cost, at: Math.floor(clock.now() / 1000) };
  return reservations.close(reservation, closeRecord, false);
}

async function item(): Promise<QuotaItem> {
  const found = await dynamo.read(account);
  if (!found) throw new Error('no item');
  expect(findImbalance(found)).toBeUndefined();
  return found;
}

const eventNames = (): string[] => log.events.map(({ name }) => name);
const sweep = createSweeper(
  {
    clock: { now: () => clock.now() + 3_600_000, sleep: (milliseconds) => clock.sleep(milliseconds) },
    random: { next: () => 0 },
    registry: noRegistry,
    scan: scanOf(async () => (await dynamo.read(account).then((found) => found && [found])) ?? []),
    quotas: { close: (write) => dynamo.store.close(write) },
    metrics: { count: () => {} },
    log: recordedLog(),
  },
  120,
);

const faults = fc.constantFrom<Fault[]>(
  'none',
  'ThrottlingException',
  'TransactionConflictException',
  'unsent',
  'reply lost',
);

async function call(index: number): Promise<'settled' | 'refused'> {
  const request = reservationRequest(`call${index}`);
  const reservation = await reservations.reserve(request).catch(() => undefined);
  await reservations.awaitCancel(request.need.id);
  if (reservation) await settle(reservation);
  return reservation ? 'settled' : 'refused';
}

const range = (last: number): number[] => Array.from({ length: last + 1 }, (_, index) => index);

beforeEach(() => begin());

describe('a settle', () => {
  test.each<[string, Fault[]]>([
    ['throttling', ['ThrottlingException', 'ThrottlingException', 'ThrottlingException']],
    ['a transaction on the account', ['TransactionConflictException', 'TransactionConflictException']],
    ['a connection that cannot be made', ['unsent', 'unsent']],
    ['a lost reply', ['reply lost']],
    ['lost replies again and again', ['reply lost', 'reply lost', 'reply lost']],
    ['everything in turn', ['unsent', 'ThrottlingException', 'reply lost', 'TransactionConflictException']],
  ])('that meets %s charges once', async (_, faults) => {
    const reservation = await reservations.reserve(reservationRequest());
    faulty.faults = [...faults];
    await settle(reservation);
    expect(faulty.faults).toEqual([]);
    expect(await item()).toMatchObject({ available: 90n, spent: cost, settled: 1, open: new Map() });
    expect(eventNames()).toEqual([]);
  });

  test('charges each call once when its reply is lost while another call settles', async () => {
    const first = await reservations.reserve(reservationRequest('first'));
    const second = await reservations.reserve(reservationRequest('second'));
    faulty.faults = ['reply lost'];
    await Promise.all([settle(first), settle(second)]);
    expect(await item()).toMatchObject({ available: 80n, spent: 2n * cost, settled: 2, open: new Map() });
  });

  test.each<Fault>(['ThrottlingException', 'TransactionConflictException', 'unsent'])(
    'that meets only %s stops before its host does, logs what a repair needs, and is swept later',
    async (fault) => {
      const reservation = await reservations.reserve(reservationRequest());
      faulty.otherwise = () => fault;
      const before = clock.now();
      await settle(reservation);
      expect(clock.now() - before).toBeLessThanOrEqual(9_000);
      expect(faulty.requests).toBeGreaterThan(5);
      const lost = log.events.find(({ name }) => name === 'settle_lost');
      expect(lost?.fields).toMatchObject({
        request_id: 'call',
        account,
        charge_nano: '10',
        kind: 'settled',
      });
      expect(await item()).toMatchObject({ available: 90n, spent: 0n, settled: 0 });
      await sweep();
      expect(await item()).toMatchObject({ available: 97n, spent: 3n, settled: 1, open: new Map() });
    },
  );

  test('charges once even when all of its replies are lost', async () => {
    const reservation = await reservations.reserve(reservationRequest());
    faulty.otherwise = () => 'reply lost';
    await settle(reservation);
    await sweep();
    expect(await item()).toMatchObject({ available: 90n, spent: cost, settled: 1, open: new Map() });
  });
});

describe('a reserve', () => {
  test.each<[string, Fault[]]>([
    ['throttling', ['ThrottlingException', 'ThrottlingException']],
    ['a transaction on the account', ['TransactionConflictException']],
    ['a connection that cannot be made', ['unsent']],
    ['a lost reply', ['reply lost']],
    ['lost replies', ['reply lost', 'reply lost']],
  ])('that meets %s reserves once', async (_, faults) => {
    faulty.faults = [...faults];
    await reservations.reserve(reservationRequest());
    const { available, open } = await item();
    expect(available).toBe(90n);
    expect([...open.keys()]).toEqual(['call']);
  });

  test.each<Fault>(['ThrottlingException', 'TransactionConflictException'])(
    'that meets only %s is rejected within its time budget, and reserves nothing',
    async (fault) => {
      faulty.otherwise = () => fault;
      const before = clock.now();
      await refused();
      expect(clock.now() - before).toBeLessThanOrEqual(1_500);
      expect(faulty.carriedOut).toBe(0);
      expect(await item()).toMatchObject({ available: 100n, open: new Map() });
    },
  );

  test("that loses every reply is undone when the store recovers, and can't apply later", async () => {
    const backMs = clock.now() + 1_500;
    faulty.otherwise = () => (clock.now() < backMs ? 'reply lost' : 'none');
    await refused();
    expect(await item()).toMatchObject({ available: 100n, spent: 0n });
    const { need, entry } = reservationRequest();
    const late = entryOf({ ...entry, amount: cost });
    expect(await dynamo.store.reserve({ account, id: need.id, entry: late })).toMatchObject({
      done: false,
    });
    await sweep();
    expect(await item()).toMatchObject({ available: 100n, spent: 0n, open: new Map() });
  });

  test('without a connection is known to have done nothing, and leaves no tombstone', async () => {
    faulty.otherwise = () => 'unsent';
    await refused();
    faulty.otherwise = () => 'none';
    expect(await item()).toMatchObject({ available: 100n, spent: 0n, open: new Map(), settled: 0 });
    expect(eventNames()).toEqual([]);
  });

  test('with an unknown outcome is logged as such, and is swept', async () => {
    faulty.otherwise = () => 'reply lost';
    await refused();
    expect(eventNames()).toContain('reserve_unknown');
    await sweep();
    const { open, available, spent, granted } = await item();
    expect(open).toEqual(new Map());
    expect(available + spent).toBe(granted);
  });
});

test(
  'a settled call is charged once, and everything is closed in the end, whatever the network does',
  async () => {
    const plans = fc.array(faults, { maxLength: 60 });
    const property = fc.asyncProperty(plans, fc.integer({ min: 1, max: 6 }), async (plan, calls) => {
      await begin(40n);
      faulty.faults = [...plan];
      const ends = await Promise.all(Array.from({ length: calls }, (_, index) => call(index)));
      faulty.faults = [];
      await sweep();
      const { available, spent, open, granted } = await item();
      expect(open).toEqual(new Map());
      expect(available + spent).toBe(granted);
      expect(available).toBeGreaterThanOrEqual(0n);
      const lost = eventNames().filter((name) => name === 'settle_lost').length;
      const settled = ends.filter((end) => end === 'settled').length - lost;
      // A settle with a lost reply was applied, or its call was swept; the same holds for a reserve.
      const unsure = range(lost).flatMap((applied) =>
        range(calls - settled - applied).map((swept) => 10 * (settled + applied) + 3 * swept),
      );
      expect(unsure).toContain(Number(spent));
    });
    await fc.assert(property, { numRuns: 60 });
  },
  slowTestMs,
);
