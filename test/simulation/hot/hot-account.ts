import { noRegistry, scanOf } from '../../support/whole-table.ts';
import type { PlanSlot } from '../../../shared/billing/reservation.ts';
import { formatPrice, type Price } from '../../../shared/billing/price.ts';
import type { CloseRecord } from '../../../shared/billing/quota-item.ts';
import { formatLedgerPartition, type CloseRow } from '../../../shared/billing/ledger-row.ts';
import { refuse, toRefusal } from '../../../shared/relay/http/refusal.ts';
import type { Reservation, ReservationRequest } from '../../../shared/relay/money/open-reservation.ts';
import { Reservations } from '../../../shared/relay/money/reservations.ts';
import { createSweeper } from '../../../shared/relay/jobs/sweeper.ts';
import { timeText } from '../../../shared/wire/ids.ts';
import { MemoryQuotaStore } from '../../support/memory-quota-store.ts';
import { SeededRandom } from '../seeded-random.ts';
import { EventClock } from './event-clock.ts';
import type { Bucket } from './bucket.ts';
import { Partition, sizeOf } from './partition.ts';
import { PricedCounters } from './priced-counters.ts';

// Virtual time passes while a file is loaded.
await Promise.all([
  import('../../../shared/relay/money/budget-hold.ts'),
  import('../../../shared/relay/money/shards.ts'),
  import('../../../shared/relay/money/shards.ts'),
  import('../../../shared/relay/money/shards.ts'),
  import('../../../shared/relay/money/late-writes.ts'),
  import('../../../shared/relay/money/late-writes.ts'),
  import('../../../shared/relay/money/shards.ts'),
]);

export interface HotOptions {
  seed?: number;
  callsPerSecond: number;
  secondsPerCall: number;
  seconds: number;
  balance: bigint;
  /** The reserved amount of a call, and its cost. */
  hold: bigint;
  spent: (chance: number) => number;
  slots?: readonly PlanSlot[];
  keys?: number;
  maxConcurrency?: number;
  /** The limits of each key: calls per minute, and the budget for the run. */
  rpm?: number;
  budget?: bigint;
  /** The chance that an environment dies during a call. */
  crash?: number;
  metered?: boolean;
  /** Partitions of the table `quotas`. */
  partitions?: number;
}

const account = 'acme';
const period = 'day@2026-11-21';
const input = 3n;
const rampMs = 5_000;
const keyRowLifetimeMs = 30_000;

/** One environment: one call at a time, its own estimates, and the number of parts that it read with the key. */
interface Host {
  reservations: Reservations;
  parts: number | undefined;
  readMs: number;
}

/** A busy account on one partition: the real reservations of many environments, in virtual time. */
export class HotAccount {
  readonly clock = new EventClock();
  readonly memory = new MemoryQuotaStore();
  readonly random: SeededRandom;
  readonly counters: PricedCounters;
  readonly partition: Partition;
  readonly events = new Map<string, number>();
  /** Refusals by code, with the longest duration of each. */
  readonly refused = new Map<string, { calls: number; longestMs: number }>();
  readonly waitsMs: number[] = [];
  readonly settlesMs: number[] = [];
  calls = 0;
  crashed = 0;
  /** The cost of all finished calls. */
  due = 0n;
  /** The largest item of a part after the account was split. */
  largestBytes = 0;
  #startMs = 0;
  readonly #options: HotOptions;
  readonly #price: Price;
  readonly #idle: Host[] = [];
  readonly #ledger = new Map<string, Map<number, number>>();

  constructor(options: HotOptions) {
    this.#options = options;
    this.random = new SeededRandom(options.seed ?? 1);
    this.counters = new PricedCounters(this.clock, () => this.random.next());
    this.partition = new Partition(this.memory, this.clock, () => this.random.next(), options.partitions);
    this.partition.onRow = (row) => {
      this.#putRow(row);
      void this.counters.project(row);
    };
    this.#price = { type: 'times-billing', rule: 1, perCall: options.hold * 1_000n };
    this.memory.grant(account, options.balance);
  }

  /** Starts calls for the given time; then everything ends, and crashed calls are swept. */
  async run(): Promise<this> {
    const { callsPerSecond, seconds } = this.#options;
    this.#startMs = this.clock.now();
    const endMs = this.#startMs + seconds * 1000;
    const arrive = (): void => {
      if (this.clock.now() >= endMs) return;
      void this.#call();
      this.clock.after((-Math.log(1 - this.random.next()) * 1000) / callsPerSecond, arrive);
    };
    this.clock.after(0, arrive);
    for (let atMs = 60_000; atMs <= seconds * 1000 + 300_000; atMs += 60_000)
      this.clock.after(atMs, () => void this.#sweep());
    await this.clock.run(endMs + 400_000);
    return this;
  }

  /** The most units a second that rows use on one partition key of the ledger. */
  get mostLedgerUnits(): number {
    return Math.max(...[...this.#ledger.values()].flatMap((seconds) => Array.from(seconds.values())));
  }

  /** A row in a transaction. Its index has separate keys. */
  #putRow(row: CloseRow): void {
    const seconds = this.#ledger.get(formatLedgerPartition(row)) ?? new Map<number, number>();
    this.#ledger.set(formatLedgerPartition(row), seconds);
    const second = Math.floor(this.clock.now() / 1000);
    seconds.set(second, (seconds.get(second) ?? 0) + 2);
  }

  /** One call and its effects. */
  async callAlone(): Promise<void> {
    void this.#call();
    await this.clock.run(this.clock.now() + 120_000);
  }

  get parts(): number {
    return this.memory.items.get(account)?.shardCount ?? 0;
  }

  get itemBytes(): number {
    return Math.max(...[...this.memory.items.values()].map(sizeOf));
  }

  /** Write units per second of the account's items, or of its keys' counters. */
  writeUnits(...buckets: Bucket[]): { mean: number; most: number } {
    const all = buckets.length > 0 ? buckets : this.partition.spread;
    const units = [0, ...all.flatMap(({ used }) => Array.from(used.values()))];
    const mean =
      units.reduce((sum, each) => sum + each, 0) / (this.#options.seconds + this.#options.secondsPerCall);
    return { mean: Math.round(mean), most: Math.max(...units) };
  }

  async #call(): Promise<void> {
    const { random, clock } = this;
    const { secondsPerCall, crash = 0, hold, spent } = this.#options;
    this.calls += 1;
    const host = this.#idle.pop() ?? this.#newHost();
    this.#readKey(host);
    const request = this.#request(host.parts);
    const startMs = clock.now();
    const reservation = await reserved(host, request).catch(async (error: unknown) => {
      this.#refusal(error, clock.now() - startMs);
      await host.reservations.awaitCancel(request.need.id);
      return undefined;
    });
    if (!reservation) return void this.#idle.push(host);
    this.waitsMs.push(clock.now() - startMs);
    const { item: own } = reservation;
    if (this.#options.metered) this.largestBytes = Math.max(this.largestBytes, own ? sizeOf(own) : 0);
    else if (clock.now() - this.#startMs > rampMs)
      for (const item of this.memory.items.values())
        this.largestBytes = Math.max(this.largestBytes, sizeOf(item));
    const ended = new AbortController();
    void host.reservations.renewUntil(reservation, ended.signal);
    const durationMs = -Math.log(1 - random.next()) * 1000 * secondsPerCall;
    if (random.chance(crash)) {
      await clock.sleep(durationMs * random.next());
      ended.abort();
      this.crashed += 1;
      if (reservation.entry.slot === '') this.due += input;
      return;
    }
    await clock.sleep(durationMs);
    ended.abort();
    const cost = BigInt(Math.round(Number(hold) * spent(random.next())));
    const charge = reservation.entry.slot === '' ? cost : 0n;
    this.due += charge;
    const { id } = reservation;
    const closeRecord: CloseRecord = { id, kind: 'settled', charge, at: Math.floor(clock.now() / 1000) };
    const settleMs = clock.now();
    await host.reservations.close(reservation, closeRecord, false);
    this.settlesMs.push(clock.now() - settleMs);
    this.#idle.push(host);
  }

  #newHost(): Host {
    const log = {
      request: () => {},
      fault: (_id: string, error: unknown) => {
        throw error;
      },
      event: (name: string) => void this.events.set(name, (this.events.get(name) ?? 0) + 1),
    };
    const { clock, random } = this;
    return {
      reservations: new Reservations({
        clock,
        random,
        quotas: this.partition,
        counters: this.counters,
        log,
      }),
      parts: undefined,
      readMs: -Infinity,
    };
  }

  #readKey(host: Host): void {
    if (this.clock.now() - host.readMs < keyRowLifetimeMs) return;
    host.parts = this.memory.parts.get(account);
    host.readMs = this.clock.now();
  }

  #request(parts: number | undefined): ReservationRequest {
    const { slots = [], keys = 1, maxConcurrency, rpm, budget } = this.#options;
    // Keys are hashes.
    const key = (Math.imul(this.calls % keys, 0x9e3779b1) >>> 0)
      .toString(16)
      .padStart(8, '0')
      .padEnd(12, '0');
    const nowMs = this.clock.now();
    const id =
      timeText(nowMs) +
      this.calls
        .toString(32)
        .replaceAll(/[iluo]/g, 'z')
        .padStart(16, '0');
    const need: ReservationRequest['need'] = {
      id,
      price: this.#price,
      slots,
      estimate: {
        inputTokens: 1,
        inputTokensMax: 1,
        n: 1,
        outputTokensMax: 1,
        outputTokensLeast: 1,
        reservesFully: true,
      },
      key,
      maxConcurrency,
      nowMs,
      metered: this.#options.metered,
      reservesNothing: false,
    };
    return {
      account,
      shardCount: parts,
      deadlineMs: nowMs + 600_000,
      need,
      rpm,
      budgets:
        budget === undefined
          ? undefined
          : [
              {
                period: 'month',
                counter: { key, period, expires: 0 },
                most: budget,
                resetsAtMs: 0,
              },
            ],
      entry: { input, key, model: 'm', price: formatPrice(this.#price), official: false },
      createRefusal: async ({ reason }) =>
        reason === 'contended' || reason === 'out_of_time'
          ? refuse('unavailable', reason, { reason: `reserve_${reason}` })
          : refuse(reason === 'reserved' ? 'balance_reserved' : 'rate_limit_exceeded', reason, { reason }),
    };
  }

  #refusal(error: unknown, tookMs: number): void {
    const { status, reason, body } = toRefusal(error);
    const code = status === 429 ? body.error.code : `${status} ${reason}`;
    const { calls, longestMs } = this.refused.get(code) ?? { calls: 0, longestMs: 0 };
    this.refused.set(code, { calls: calls + 1, longestMs: Math.max(longestMs, tookMs) });
  }

  async #sweep(): Promise<void> {
    const { clock, random, memory, partition } = this;
    const scan = scanOf(async () => [...memory.items.values()].filter(({ open }) => open.size > 0));
    const log = { request: () => {}, fault: () => {}, event: () => {} };
    const ports = {
      clock,
      random,
      registry: noRegistry,
      scan,
      quotas: partition,
      metrics: { count: () => {} },
      log,
    };
    await createSweeper(ports, 120)();
  }
}

/** Counts the call first, as a real call does. */
async function reserved({ reservations }: Host, request: ReservationRequest): Promise<Reservation> {
  const rateCount = await reservations.admit(request);
  return reservations.reserve({ ...request, rateCount });
}
