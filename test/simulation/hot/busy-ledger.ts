import { createLedgerStore } from '../../../shared/adapters/dynamodb/ledger-store.ts';
import { createOpenRegistry } from '../../../shared/adapters/dynamodb/quotas/open-registry.ts';
import { createQuotaItem, type CloseRecord, type OpenEntry } from '../../../shared/billing/quota-item.ts';
import type { TableClient } from '../../../shared/adapters/dynamodb/table-client.ts';
import { createLedgerProjector } from '../../../shared/relay/jobs/ledger-projector.ts';
import { openWatch } from '../../../shared/relay/jobs/sweeper.ts';
import type { QuotaChange } from '../../../shared/relay/ports/money-stores.ts';
import { hash53, timeText } from '../../../shared/wire/ids.ts';
import { formatChannelId } from '../../../shared/billing/daily-keys.ts';
import type { DailyFigures } from '../../../shared/billing/daily-figures.ts';
import { createDailyReader, createSumReader } from '../../../shared/adapters/dynamodb/daily-sums.ts';
import type { Reading } from '../../../shared/operate/operator-ports.ts';
import { functionDescriptions } from '../../../infra/stack/constructs/function-descriptions.ts';
import { SeededRandom } from '../seeded-random.ts';
import { EventClock } from './event-clock.ts';
import { ModelledTables } from './modelled-tables.ts';

export interface BusyOptions {
  seed?: number;
  closesPerSecond: number;
  seconds: number;
  accounts: number;
  /** Shards of the stream of `quotas`, one per partition of its table. */
  shards: number;
  models?: number;
  channels?: number;
  /** The chance that an environment dies in the middle of a batch. */
  crash?: number;
  /** The chance that the reply of a write is lost. */
  lost?: number;
  partitions?: number;
  /** The store throttles every write between these seconds. */
  throttled?: { fromSeconds: number; toSeconds: number };
}

/** The figures of a row, recorded where the call is made and independently of the tested code. */
interface Expected {
  calls: number;
  charged: bigint;
  tokens: number;
}

const [stream] = functionDescriptions.ledger.streams!;
const gatherMs = (stream?.gathersSeconds ?? 0) * 1000;
const partsOfHot = 64;
/** Accounts with a large share of the calls are split into parts, which lie in all shards. */
const hotShare = 0.005;
/** The longest delay until the poller sees a record. */
const pollMsMax = 250;
/**
 * Lambda's overhead, and the computing time of the function on a seventh of a processor: to read a record, and to write
 * an item.
 */
const invokeMs = 15;
const computeMs = 0.3;
const itemMs = 0.15;
const deadMs = 1_000;
/** The time between two arrivals of calls. */
const tickMs = 50;

interface Record {
  change: QuotaChange;
  atMs: number;
}

const rowsOf = <Row>(page: readonly Reading<Row>[]): Row[] =>
  page.map((each) => {
    if ('row' in each) return each.row;
    throw new Error(each.problem);
  });

/** One shard: a list that is consumed from its beginning. */
interface Shard {
  records: Record[];
  project: (changes: readonly QuotaChange[]) => Promise<(Error | undefined)[]>;
}

/** Many accounts at once: the real projector and the real ledger store on modelled tables. */
export class BusyLedger {
  readonly clock = new EventClock();
  readonly random: SeededRandom;
  readonly tables: ModelledTables;
  readonly expected = new Map<string, Expected>();
  readonly events = new Map<string, number>();
  /** The delay of each row after its close, except in the last seconds, when no call fills a batch. */
  readonly #lagsMs: number[] = [];
  calls = 0;
  put = 0;
  batches = 0;
  crashed = 0;
  readonly day: string;
  readonly #shards: Shard[];
  readonly #closedMs = new Map<string, number>();
  readonly #shares: number[] = [];
  readonly #options: BusyOptions;
  #isOver = false;
  #endMs = 0;

  constructor(options: BusyOptions) {
    this.#options = options;
    this.random = new SeededRandom(options.seed ?? 1);
    const random = (): number => this.random.next();
    const { partitions = 32, lost = 0, accounts, throttled } = options;
    const beganMs = this.clock.now();
    const isThrottled = (): boolean => {
      const { fromSeconds, toSeconds } = throttled ?? { fromSeconds: 0, toSeconds: 0 };
      const seconds = (this.clock.now() - beganMs) / 1000;
      return seconds >= fromSeconds && seconds < toSeconds;
    };
    this.tables = new ModelledTables({ clock: this.clock, random, partitions, lost, isThrottled });
    this.tables.onWrite = (table, item) => {
      if (table === 'relay-ledger') this.#wrote(item['id']?.S ?? '');
    };
    this.day = new Date(this.clock.now()).toISOString().slice(0, 10);
    this.#shards = Array.from({ length: options.shards }, () => ({
      records: [],
      project: this.#environment(),
    }));
    let whole = 0;
    for (let at = 0; at < accounts; at += 1) whole += 1 / (at + 1);
    let sum = 0;
    for (let at = 0; at < accounts; at += 1) this.#shares.push((sum += 1 / (at + 1) / whole));
  }

  /** Closes calls for the given time, then reads the stream to its end. */
  async run(): Promise<this> {
    const { closesPerSecond, seconds } = this.#options;
    const endMs = this.clock.now() + seconds * 1000;
    this.#endMs = endMs;
    let due = 0;
    const arrive = (): void => {
      if (this.clock.now() >= endMs) return void (this.#isOver = true);
      due += (closesPerSecond * tickMs) / 1000;
      for (; due >= 1; due -= 1) this.#call();
      this.clock.after(tickMs, arrive);
    };
    this.clock.after(0, arrive);
    for (const shard of this.#shards) void this.#poll(shard);
    await this.clock.run(endMs + 600_000);
    return this;
  }

  /** The delay after the close within which this percentage of rows arrived. */
  lagMs(percentile: number): number {
    const sorted = this.#lagsMs.toSorted((a, b) => a - b);
    return Math.round(sorted[Math.floor((sorted.length - 1) * (percentile / 100))] ?? 0);
  }

  /** The sums as operators read them, and the expected calls, charges and tokens under each name. */
  async sums(): Promise<{ read: Map<string, Expected>; expected: Map<string, Expected> }> {
    const store = {
      tables: this.tables,
      target: { stack: 'relay', endpoint: undefined, local: false },
    } as never;
    const [sums, daily] = [createSumReader(store), createDailyReader(store)];
    const read = new Map<string, Expected>();
    const add = (name: string, { counts, amounts }: DailyFigures): void => {
      const sum = read.get(name) ?? { calls: 0, charged: 0n, tokens: 0 };
      sum.calls += counts.calls ?? 0;
      sum.charged += amounts.charged ?? 0n;
      sum.tokens += counts.prompt_tokens ?? 0;
      read.set(name, sum);
    };
    const days = { from: this.day, to: this.day };
    for await (const page of sums.monthAccounts(this.day.slice(0, 7)))
      for (const { account, figures } of rowsOf(page)) add(account, figures);
    for await (const page of sums.served(days))
      for (const { model, channel, figures } of rowsOf(page)) {
        add('all', figures);
        if (read.has(`${model} ${channel}`)) throw new Error(`${model} on ${channel} is said twice`);
        add(`${model} ${channel}`, figures);
      }
    for (const channel of [...this.expected.keys()].filter((name) => /^channel-\d+$/.test(name)))
      for await (const page of daily.daily(formatChannelId(channel), days))
        for (const { figures } of rowsOf(page)) add(channel, figures);
    return { read, expected: this.expected };
  }

  /** The ids of the sums of served models. */
  get buckets(): string[] {
    const ids = this.tables.rows('daily').map(({ id }) => id?.S ?? '');
    return [...new Set(ids)].filter((id) => id.startsWith('served'));
  }

  #call(): void {
    const { random, clock } = this;
    const { models = 6, channels = 4 } = this.#options;
    const nowMs = clock.now();
    const account = this.#account();
    const share = this.#shares[account]! - (this.#shares[account - 1] ?? 0);
    const part = share > hotShare ? random.integer(0, partsOfHot - 1) : 0;
    const name = `account-${account}`;
    const item = part === 0 ? name : `${name}#${part}`;
    // Most calls use a few models.
    const model = `model-${Math.floor(models * random.next() ** 2)}`;
    const channel = `channel-${Math.floor(channels * random.next() ** 2)}`;
    this.calls += 1;
    const id = timeText(nowMs) + String(this.calls).padStart(16, '0');
    const charge = BigInt(random.integer(1, 10_000_000));
    const tokens = random.integer(1, 1_000);
    for (const key of ['all', name, `${model} ${channel}`, channel]) {
      const sum = this.expected.get(key) ?? { calls: 0, charged: 0n, tokens: 0 };
      sum.calls += 1;
      sum.charged += charge;
      sum.tokens += tokens;
      this.expected.set(key, sum);
    }
    const entry: OpenEntry = {
      until: Math.floor(nowMs / 1000) + 60,
      amount: 0n,
      input: 1n,
      key: '0123456789ab',
      model,
      price: '1:tokens:0.001:0.002',
      slot: '',
      official: false,
      tombstone: false,
    };
    const last: CloseRecord = {
      id,
      kind: 'settled',
      charge,
      at: Math.floor(nowMs / 1000),
      endpoint: 'chat',
      prompt_tokens: tokens,
      completion_tokens: 2,
      end: 'completed',
      channel,
      first_content_ms: 400,
      bought: 1n,
    };
    const closed = { ...createQuotaItem(name, part), granted: charge, spent: charge, last };
    const open = { ...closed, spent: 0n, available: charge, last: undefined, open: new Map([[id, entry]]) };
    this.#closedMs.set(id, nowMs);
    const { records } = this.#shards[hash53(item) % this.#shards.length]!;
    const seenMs = nowMs + pollMsMax * random.next();
    // The reserve of another call comes with the close of this one.
    records.push({ atMs: seenMs, change: { item, account: name, before: undefined, after: open } });
    records.push({ atMs: seenMs, change: { item, account: name, before: open, after: closed } });
  }

  #account(): number {
    const chance = this.random.next();
    let [low, high] = [0, this.#shares.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#shares[middle]! < chance) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #environment(): Shard['project'] {
    const { clock, random, tables } = this;
    const log = {
      request: () => {},
      fault: () => {},
      event: (name: string) => void this.events.set(name, (this.events.get(name) ?? 0) + 1),
    };
    let busyUntilMs = 0;
    const client: TableClient = {
      async call(operation, input) {
        // One processor: it computes one transaction while others wait for the store.
        const items = (input as { TransactItems?: unknown[] }).TransactItems?.length ?? 1;
        busyUntilMs = Math.max(busyUntilMs, clock.now()) + items * itemMs;
        await clock.sleep(busyUntilMs - clock.now());
        return tables.call(operation, input);
      },
    };
    const ledger = createLedgerStore(client, 'relay', random);
    const watch = openWatch({ clock, registry: createOpenRegistry(tables, 'relay') }, 120);
    const project = createLedgerProjector({ clock, random, log, ledger, metrics: { count: () => {} } });
    return async (changes) => {
      await watch(changes);
      return project(changes);
    };
  }

  /** Polls as Lambda does: a batch is full or has waited long enough, and the next one waits for its end. */
  async #poll(shard: Shard): Promise<void> {
    const { clock, random } = this;
    const { crash = 0 } = this.#options;
    // Shards are older than the run, so they do not poll in step.
    await clock.sleep(2_000 * random.next());
    while (!this.#isOver || shard.records.length > 0) {
      const nowMs = clock.now();
      const [first] = shard.records;
      const seen = shard.records.findIndex(({ atMs }) => atMs > nowMs);
      const ready = Math.min(stream!.recordsAtOnce, seen < 0 ? shard.records.length : seen);
      const isDue = ready === stream!.recordsAtOnce || (first && ready > 0 && nowMs >= first.atMs + gatherMs);
      if (!isDue) {
        await clock.sleep(tickMs);
        continue;
      }
      const batch = shard.records.slice(0, ready).map(({ change }) => change);
      this.batches += 1;
      await clock.sleep(invokeMs + computeMs * batch.length);
      const work = shard.project(batch).catch((error: unknown) => batch.map(() => error as Error));
      if (random.chance(crash)) {
        // Its started writes continue at the store, but nobody receives the replies: another environment gets the batch
        // again.
        this.crashed += 1;
        await clock.sleep(deadMs * random.next());
        shard.project = this.#environment();
        continue;
      }
      const outcomes = await work;
      const failed = outcomes.findIndex((outcome) => outcome !== undefined);
      shard.records.splice(0, failed < 0 ? batch.length : failed);
    }
  }

  #wrote(id: string): void {
    this.put += 1;
    const closedMs = this.#closedMs.get(id)!;
    if (closedMs < this.#endMs - gatherMs) this.#lagsMs.push(this.clock.now() - closedMs);
  }
}
