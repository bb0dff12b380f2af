/**
 * What an environment knows from the table `runtime`: the configuration that it serves, the health of candidates and the
 * learned facts, all from one read every few seconds. A request must never wait long for a newer configuration while an
 * older one is available, and never for a read of health or facts.
 */
import type { Fact, LearnedFact, ServedModel } from '../../upstreams/quirks.ts';
import { emptySnapshot, snapshotFormat, type Snapshot } from '../../config/snapshot.ts';
import type { ConfigSource, Pointer } from '../../relay/ports/config-store.ts';
import type { Clock } from '../../relay/ports/host.ts';
import {
  factsFreshMs,
  type ChannelHealth,
  type HealthChange,
  type HealthEntry,
  type LearnedFacts,
  type LearnedFactsReader,
} from '../../relay/ports/runtime-stores.ts';
import { firstTryMsMax, StoreUnavailable } from '../../relay/ports/store-errors.ts';
import type { Log } from '../../relay/ports/telemetry.ts';
import { keepNewest } from '../system/node-ports.ts';
import type { HealthImage } from './health-items.ts';
import {
  cooldownsId,
  getItems,
  pointerId,
  pointerOf,
  readSnapshot,
  type RuntimeItem,
} from './runtime-items.ts';
import { expressed, Table, valuesOf, type TableClient } from './table-client.ts';

/** Maximum age of a read. Together with the compile it makes an edit live within 10 s. */
const freshMs = factsFreshMs;
/** How long a request waits for a newer configuration when an older one is available. */
const waitMsMax = 300;
/** How long nothing is read anew after a failed read, while there is an older configuration. */
const retryAfterMs = 1000;
/** How long an answer waits that must not come from an old configuration: for two reads that take a second each. */
const renewMsMax = 2500;
/** How long a first request waits, which cannot be answered otherwise. */
const firstReadMsMax = 8000;
const firstPauseMs = 50;
const pauseMsMax = 400;

interface SourceParts {
  client: TableClient;
  clock: Clock;
  log: Log;
  stack: string;
}

interface Held {
  snapshot: Snapshot;
  /** Absent: nothing has been published yet. */
  pointer?: Pointer;
  /** Epoch milliseconds at which the read began. */
  checkedAt: number;
}

/** An item as this environment last read it. */
export interface ItemView {
  item: RuntimeItem | undefined;
  /** Epoch milliseconds at which the read began. */
  readAtMs: number;
}

const neverRead: ItemView = { item: undefined, readAtMs: -Infinity };

interface Reading {
  startedAt: number;
  done: Promise<void>;
}

export function dynamoConfigSource({ client, clock, log, stack }: SourceParts) {
  const table = new Table(client, stack, 'runtime');
  let held: Held | undefined;
  let cooldowns = neverRead;
  let learned = neverRead;
  let reading: Reading | undefined;
  let failedAt = -Infinity;

  const read = async (startedAt: number): Promise<void> => {
    const tryMsMax = held ? undefined : firstTryMsMax;
    const items = await getItems(table, [pointerId, cooldownsId, learnedId], { tryMsMax });
    // A read that a freeze of the environment delayed must not overwrite the result of a later one.
    if (held && held.checkedAt > startedAt) return;
    cooldowns = { item: items.get(cooldownsId), readAtMs: startedAt };
    learned = { item: items.get(learnedId), readAtMs: startedAt };
    const pointer = items.get(pointerId);
    const next = await follow(pointer && pointerOf(pointer));
    if (!held || held.checkedAt <= startedAt) held = { ...next, checkedAt: startedAt };
  };

  /** What to hold after a read of the pointer. Reads a snapshot only when the pointer names another one. */
  const follow = async (pointer: Pointer | undefined): Promise<Omit<Held, 'checkedAt'>> => {
    if (!pointer) return held ?? { snapshot: emptySnapshot(Math.floor(clock.now() / 1000)) };
    const { version, digest, format } = pointer;
    if (held?.pointer?.version === version && held.pointer.digest === digest) return held;
    if (format === snapshotFormat) return { snapshot: await readSnapshot(table, pointer), pointer };
    log.event('config_format_unknown', { version, format });
    if (held) return held;
    throw new StoreUnavailable('The configuration is in a form that this function does not know.');
  };

  /**
   * Joins the pending read. Starts a new one when the pending read is 8 s old: a freeze interrupted it, so
   * its result is outdated.
   */
  const join = (): Reading => {
    const startedAt = clock.now();
    if (reading && startedAt - reading.startedAt < freshMs) return reading;
    const started: Reading = {
      startedAt,
      done: read(startedAt).finally(() => {
        if (reading === started) reading = undefined;
      }),
    };
    reading = started;
    return started;
  };

  /** Joins the pending read until the given time. Returns its error; undefined: it was read, or the time is up. */
  const joinUntil = async ({ startedAt, done }: Reading, untilMs: number): Promise<unknown> => {
    let failure: unknown;
    const settled = done.catch((error: unknown) => {
      if (failedAt < startedAt) log.fault('config', error);
      failedAt = clock.now();
      failure = error;
    });
    const leftMs = untilMs - clock.now();
    // The read has already been pending for as long as a request may wait.
    if (leftMs <= 0) return undefined;
    const waiting = new AbortController();
    await Promise.race([settled, clock.sleep(leftMs, waiting.signal)]);
    waiting.abort();
    return failure;
  };

  const refresh = async (msMax = waitMsMax): Promise<void> => {
    const joined = join();
    await joinUntil(joined, joined.startedAt + msMax);
  };

  const renewed = async (ageMsMax: number): Promise<Snapshot> => {
    // Counted from here, so that a read that began later is new enough however long it takes.
    const sinceMs = clock.now() - ageMsMax;
    const untilMs = clock.now() + (held ? renewMsMax : firstReadMsMax);
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMsMax, pauseMs * 2)) {
      if (held && held.checkedAt > sinceMs) return held.snapshot;
      const cause = await joinUntil(join(), untilMs);
      if (held && held.checkedAt > sinceMs) return held.snapshot;
      const isTransient = cause === undefined || cause instanceof StoreUnavailable;
      // Callers with an older configuration begin again together, so that a store in trouble is asked once a second.
      const waitMs = Math.max(pauseMs, held ? failedAt + retryAfterMs - clock.now() : 0);
      if (!isTransient || clock.now() + waitMs >= untilMs)
        throw new StoreUnavailable('The configuration cannot be read.', { cause });
      if (cause !== undefined) await clock.sleep(waitMs);
    }
  };

  return {
    async current() {
      if (!held) return renewed(freshMs);
      const now = clock.now();
      if (now - held.checkedAt >= freshMs && now - failedAt >= retryAfterMs) await refresh();
      return held.snapshot;
    },
    notOlderThan: renewed,
    /** The item `cooldowns` as last read. */
    cooldowns: () => cooldowns,
    /** The item `learned` as last read. */
    learned: () => learned,
    /** Reads now, regardless of the last read's age; waits no longer than this, by default 300 ms. Never rejects. */
    refresh,
  } satisfies ConfigSource & Record<string, unknown>;
}

interface ViewParts {
  client: TableClient;
  clock: Pick<Clock, 'now'>;
  stack: string;
  /** The item as last read with the configuration. */
  view: () => ItemView;
}

// The health of candidates. `health-items.ts` has the item's form; it is loaded when there is an entry.

const healthItems = () => import('./health-items.ts');
const triesMax = 3;
const noEntries: ReadonlyMap<number, HealthEntry> = new Map();

export class DynamoChannelHealth implements ChannelHealth {
  readonly #parts: ViewParts;
  /** What the last write of this environment met. It overrides an older read. */
  #written = neverRead;
  #parsed: { item: RuntimeItem | undefined; image: HealthImage } | undefined;

  constructor(parts: ViewParts) {
    this.#parts = parts;
  }

  async entries(): Promise<ReadonlyMap<number, HealthEntry>> {
    const item = this.#newest();
    for (const name in item) if (name !== 'id') return (await this.#image(item)).entries;
    return noEntries;
  }

  async change(key: number, change: HealthChange): Promise<boolean> {
    const { client, clock, stack } = this.#parts;
    const { writeOf, updateOf } = await healthItems();
    const table = new Table(client, stack, 'runtime');
    let item = this.#newest();
    for (let tries = 0; tries < triesMax; tries += 1) {
      const image = await this.#image(item);
      const before = image.entries.get(key);
      const entry = change(before);
      const write = entry === before ? undefined : writeOf(image, { key, entry, nowMs: clock.now() });
      if (!write) return false;
      const returned = { ReturnValues: 'ALL_NEW', ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const;
      const reply = await table.update({ id: cooldownsId }, { ...updateOf(write), ...returned });
      const met = reply.done ? reply.reply.Attributes : reply.item;
      item = met && valuesOf(met);
      this.#written = { item, readAtMs: clock.now() };
      if (reply.done) return true;
    }
    return false;
  }

  #newest(): RuntimeItem | undefined {
    const read = this.#parts.view();
    return read.readAtMs >= this.#written.readAtMs ? read.item : this.#written.item;
  }

  /** Parses each item once. */
  async #image(item: RuntimeItem | undefined): Promise<HealthImage> {
    if (this.#parsed?.item === item && this.#parsed) return this.#parsed.image;
    const { imageOf } = await healthItems();
    const image = imageOf(item);
    this.#parsed = { item, image };
    return image;
  }
}

// What answers taught: the item `learned` has one attribute for each fact, `<fact>|<channel>|<model>`, whose value is the
// fact's end in epoch milliseconds.

export const learnedId = 'learned';

/** A channel's id has no bar; a model's name may not contain one either. */
const form =
  /^(keeps_state|(?:refuses_limit|limit_over_context):\d{1,9}|(?:speaks|wants_back):[\w-]{1,40}|efforts:[a-z+]{1,60})\|([^|]+)\|([^|]+)$/;

const modelName = ({ channel, model }: ServedModel): string => `${channel}|${model}`;
const factName = ({ fact, ...served }: ServedModel & { fact: Fact }): string =>
  `${fact}|${modelName(served)}`;

/** All facts of an item, those that have ended included. */
const factsOf = (item: RuntimeItem | undefined): LearnedFact[] =>
  Object.entries(item ?? {}).flatMap(([attribute, untilMs]) => {
    const [, fact, channel, model] = form.exec(attribute) ?? [];
    if (fact === undefined || channel === undefined || model === undefined) return [];
    return typeof untilMs === 'number' ? [{ fact: fact as Fact, channel, model, untilMs }] : [];
  });

/** Keeps the item under 40 KB: every environment reads it every few seconds. */
const factsMax = 200;
/** How many ended facts one write removes. */
const removedAtOnce = 20;
const settledMax = 2_000;
const isNewer = 'attribute_not_exists(#fact) OR #fact < :until';

export class DynamoLearnedFacts implements LearnedFacts {
  readonly #parts: ViewParts;
  /** Facts that this environment learned. They override an older read. */
  readonly #own = new Map<string, LearnedFact>();
  /** When this environment last saw for itself that a model needs no state, the oldest first. */
  readonly #settled = new Map<string, number>();
  #read: { item: RuntimeItem | undefined; facts: LearnedFact[] } = { item: undefined, facts: [] };

  constructor(parts: ViewParts) {
    this.#parts = parts;
  }

  of({ channel, model }: ServedModel): readonly LearnedFact[] {
    const nowMs = this.#parts.clock.now();
    const all = new Map(this.#facts().map((fact) => [factName(fact), fact]));
    for (const [name, fact] of this.#own)
      if (fact.untilMs <= nowMs) this.#own.delete(name);
      else if (fact.untilMs > (all.get(name)?.untilMs ?? 0)) all.set(name, fact);
    return [...all.values()].filter(
      (fact) => fact.channel === channel && fact.model === model && fact.untilMs > nowMs,
    );
  }

  async learn(fact: LearnedFact): Promise<void> {
    const { client, clock, stack } = this.#parts;
    const name = factName(fact);
    if (this.#own.size < factsMax) this.#own.set(name, fact);
    const nowMs = clock.now();
    const known = this.#facts();
    const running = known.filter(({ untilMs }) => untilMs > nowMs).map(factName);
    if (running.length >= factsMax && !running.includes(name)) return;
    const ended = known
      .filter((one) => one.untilMs <= nowMs && factName(one) !== name)
      .slice(0, removedAtOnce)
      .map((one, index) => [`#ended${index}`, factName(one)] as const);
    const removed = ended.map(([placeholder]) => placeholder).join(', ');
    const UpdateExpression = `SET #fact = :until${removed === '' ? '' : ` REMOVE ${removed}`}`;
    const names = { '#fact': name, ...Object.fromEntries(ended) };
    const write = expressed(
      { UpdateExpression, ConditionExpression: isNewer },
      { ':until': fact.untilMs },
      names,
    );
    await new Table(client, stack, 'runtime').update({ id: learnedId }, write);
  }

  isSettled(served: ServedModel, sinceMs: number): boolean {
    const { readAtMs } = this.#parts.view();
    const seenAtMs = this.#settled.get(modelName(served));
    if (readAtMs >= sinceMs || seenAtMs === undefined) return readAtMs >= sinceMs;
    return Math.max(readAtMs, seenAtMs) >= sinceMs - factsFreshMs;
  }

  settle(served: ServedModel): void {
    keepNewest(this.#settled, settledMax, modelName(served), this.#parts.clock.now());
  }

  /** The facts of the item as last read, parsed once. */
  #facts(): LearnedFact[] {
    const { item } = this.#parts.view();
    if (item !== this.#read.item) this.#read = { item, facts: factsOf(item) };
    return this.#read.facts;
  }
}

/** For the publisher of the configuration. */
export const dynamoLearnedFactsReader = ({
  client,
  clock,
  stack,
}: Omit<ViewParts, 'view'>): LearnedFactsReader => ({
  async all() {
    const items = await getItems(new Table(client, stack, 'runtime'), [learnedId]);
    const nowMs = clock.now();
    return factsOf(items.get(learnedId)).filter(({ untilMs }) => untilMs > nowMs);
  },
});
