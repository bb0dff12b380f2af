/**
 * What an environment knows from the table `runtime`: the configuration that it serves, the health of candidates and the
 * learned facts, all from one read every few seconds. A request must never wait long for a newer configuration while an
 * older one is available, and never for a read of health or facts.
 */
import {
  pickNewestFacts,
  subjectOf,
  type Fact,
  type LearnedFact,
  type ServedModel,
} from '../../upstreams/quirks.ts';
import { createEmptySnapshot, snapshotFormat, type Snapshot } from '../../config/snapshot.ts';
import type { ConfigSource, Pointer } from '../../relay/ports/config-store.ts';
import { within } from '../../relay/retry.ts';
import type { Clock, Random } from '../../relay/ports/host.ts';
import {
  factsFreshMs,
  type ChannelHealth,
  type LearnedFacts,
  type LearnedFactsReader,
} from '../../relay/ports/runtime-stores.ts';
import { firstTryMsMax, StoreUnavailable } from '../../relay/ports/store-errors.ts';
import type { Log } from '../../relay/ports/telemetry.ts';
import { keepNewest } from '../system/node-ports.ts';
import { imageOf, updateOf, writeOf, type HealthImage } from './health-items.ts';
import {
  cooldownsId,
  readItems,
  pointerId,
  decodePointer,
  readSnapshot,
  type RuntimeItem,
} from './runtime-items.ts';
import { buildExpressions, setAndRemove, Table, valuesOf, type TableClient } from './table-client.ts';

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

interface ConfigSourceDeps {
  client: TableClient;
  clock: Clock;
  random: Random;
  log: Log;
  stack: string;
}

interface ServedConfig {
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

export function createConfigSource({ client, clock, random, log, stack }: ConfigSourceDeps) {
  const table = new Table(client, stack, 'runtime');
  let config: ServedConfig | undefined;
  let cooldowns = neverRead;
  let learned = neverRead;
  let reading: Reading | undefined;
  let failedAt = -Infinity;

  const read = async (startedAt: number): Promise<void> => {
    const tryMsMax = config ? undefined : firstTryMsMax;
    const items = await readItems(table, [pointerId, cooldownsId, learnedId], { tryMsMax });
    // A read that a freeze of the environment delayed must not overwrite the result of a later one.
    if (config && config.checkedAt > startedAt) return;
    cooldowns = { item: items.get(cooldownsId), readAtMs: startedAt };
    learned = { item: items.get(learnedId), readAtMs: startedAt };
    const pointer = items.get(pointerId);
    const next = await follow(pointer && decodePointer(pointer));
    if (!config || config.checkedAt <= startedAt) config = { ...next, checkedAt: startedAt };
  };

  /** What to hold after a read of the pointer. Reads a snapshot only when the pointer names another one. */
  const follow = async (pointer: Pointer | undefined): Promise<Omit<ServedConfig, 'checkedAt'>> => {
    if (!pointer) return config ?? { snapshot: createEmptySnapshot(Math.floor(clock.now() / 1000)) };
    const { version, digest, format, copies } = pointer;
    if (config?.pointer?.version === version && config.pointer.digest === digest) return config;
    // Each read draws a copy, so that thousands of environments do not meet on one item, and a repeat not on a throttled one.
    const copy = Math.floor(random.next() * copies);
    if (format === snapshotFormat) return { snapshot: await readSnapshot(table, pointer, copy), pointer };
    log.event('config_format_unknown', { version, format });
    if (config) return config;
    throw new StoreUnavailable('The configuration is in a form that this function does not know.');
  };

  /**
   * Joins the pending read. Starts a new one when the pending read is 8 s old: a freeze interrupted it, so
   * its result is outdated.
   */
  const joinRead = (): Reading => {
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
    await within(clock, leftMs, { work: settled, late: undefined });
    return failure;
  };

  const refresh = async (msMax = waitMsMax): Promise<void> => {
    const joined = joinRead();
    await joinUntil(joined, joined.startedAt + msMax);
  };

  const renew = async (ageMsMax: number): Promise<Snapshot> => {
    // Counted from here, so that a read that began later is new enough however long it takes.
    const sinceMs = clock.now() - ageMsMax;
    const untilMs = clock.now() + (config ? renewMsMax : firstReadMsMax);
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMsMax, pauseMs * 2)) {
      if (config && config.checkedAt > sinceMs) return config.snapshot;
      const cause = await joinUntil(joinRead(), untilMs);
      if (config && config.checkedAt > sinceMs) return config.snapshot;
      const isTransient = cause === undefined || cause instanceof StoreUnavailable;
      // Callers with an older configuration begin again together, so that a store in trouble is asked once a second.
      const waitMs = Math.max(pauseMs, config ? failedAt + retryAfterMs - clock.now() : 0);
      if (!isTransient || clock.now() + waitMs >= untilMs)
        throw new StoreUnavailable('The configuration cannot be read.', { cause });
      if (cause !== undefined) await clock.sleep(waitMs);
    }
  };

  return {
    async current() {
      if (!config) return renew(freshMs);
      const now = clock.now();
      if (now - config.checkedAt >= freshMs && now - failedAt >= retryAfterMs) await refresh();
      return config.snapshot;
    },
    notOlderThan: renew,
    /** The item `cooldowns` as last read. */
    cooldowns: () => cooldowns,
    /** The item `learned` as last read. */
    learned: () => learned,
    /** Reads now, regardless of the last read's age; waits no longer than this, by default 300 ms. Never rejects. */
    refresh,
  } satisfies ConfigSource & Record<string, unknown>;
}

interface ViewDeps {
  client: TableClient;
  clock: Pick<Clock, 'now'>;
  stack: string;
  /** The item as last read with the configuration. */
  view: () => ItemView;
}

const triesMax = 3;

/** The health of candidates. */
export function createChannelHealth({ client, clock, stack, view }: ViewDeps): ChannelHealth {
  const table = new Table(client, stack, 'runtime');
  /** What the last write of this environment met. It overrides an older read. */
  let written = neverRead;
  /** Each item is parsed once. */
  let parsed = { item: undefined as RuntimeItem | undefined, image: imageOf(undefined) };
  const pickNewestItem = () => {
    const read = view();
    return read.readAtMs >= written.readAtMs ? read.item : written.item;
  };
  const imageIn = (item: RuntimeItem | undefined): HealthImage => {
    if (parsed.item !== item) parsed = { item, image: imageOf(item) };
    return parsed.image;
  };
  return {
    entries: async () => imageIn(pickNewestItem()).entries,
    async change(key, change) {
      let item = pickNewestItem();
      for (let tries = 0; tries < triesMax; tries += 1) {
        const image = imageIn(item);
        const before = image.entries.get(key);
        const entry = change(before);
        const write = entry === before ? undefined : writeOf(image, { key, entry, nowMs: clock.now() });
        if (!write) return false;
        const returned = { ReturnValues: 'ALL_NEW', ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const;
        const reply = await table.update({ id: cooldownsId }, { ...updateOf(write), ...returned });
        const met = reply.done ? reply.reply.Attributes : reply.item;
        item = met && valuesOf(met);
        written = { item, readAtMs: clock.now() };
        if (reply.done) return true;
      }
      return false;
    },
  };
}

// What answers taught: the item `learned` has one attribute for each fact, `<fact>|<channel>|<model>`, whose value is the
// fact's end in epoch milliseconds.

const learnedId = 'learned';

/** A channel's id has no bar; a model's name may not contain one either. */
const form =
  /^(keeps_state|(?:refuses_limit|limit_over_context):\d{1,9}|[a-z_]{3,30}:[\w+-]{0,60})\|([^|]+)\|([^|]+)$/;

const modelName = ({ channel, model }: ServedModel): string => `${channel}|${model}`;
const nameFact = ({ fact, ...served }: ServedModel & { fact: Fact }): string =>
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
/** How many facts that have ended, or that a newer one replaces, one write removes. */
const removedAtOnce = 20;
const settledMax = 2_000;
const isNewer = 'attribute_not_exists(#fact) OR #fact < :until';

export function createLearnedFacts({ client, clock, stack, view }: ViewDeps): LearnedFacts {
  /** Facts that this environment learned. They override an older read. */
  const learnedHere = new Map<string, LearnedFact>();
  /** When this environment last saw for itself that a model needs no state, the oldest first. */
  const settledAtMs = new Map<string, number>();
  let parsed = { item: undefined as RuntimeItem | undefined, facts: factsOf(undefined) };
  /** The facts of the item as last read, parsed once. */
  const readFacts = (): LearnedFact[] => {
    const { item } = view();
    if (item !== parsed.item) parsed = { item, facts: factsOf(item) };
    return parsed.facts;
  };
  return {
    of({ channel, model }) {
      const nowMs = clock.now();
      for (const [subject, fact] of learnedHere) if (fact.untilMs <= nowMs) learnedHere.delete(subject);
      const all = [...readFacts(), ...learnedHere.values()].filter(
        (fact) => fact.channel === channel && fact.model === model && fact.untilMs > nowMs,
      );
      return pickNewestFacts(all);
    },
    async learn(fact) {
      const name = nameFact(fact);
      if (learnedHere.size < factsMax || learnedHere.has(subjectOf(fact)))
        learnedHere.set(subjectOf(fact), fact);
      const nowMs = clock.now();
      const inForce = new Set(pickNewestFacts([...readFacts(), fact]));
      const { ended = [], running = [] } = Object.groupBy(readFacts(), (one) =>
        one.untilMs > nowMs && inForce.has(one) ? 'running' : 'ended',
      );
      if (running.length >= factsMax && !running.some((one) => nameFact(one) === name)) return;
      const removed = ended
        .map(nameFact)
        .filter((one) => one !== name)
        .slice(0, removedAtOnce)
        .map((one, index) => [`#ended${index}`, one] as const);
      const write = buildExpressions(
        {
          UpdateExpression: setAndRemove(
            ['#fact = :until'],
            removed.map(([placeholder]) => placeholder),
          ),
          ConditionExpression: isNewer,
        },
        { ':until': fact.untilMs },
        { '#fact': name, ...Object.fromEntries(removed) },
      );
      await new Table(client, stack, 'runtime').update({ id: learnedId }, write);
    },
    isSettled(served, sinceMs) {
      const { readAtMs } = view();
      const seenAtMs = settledAtMs.get(modelName(served));
      if (readAtMs >= sinceMs || seenAtMs === undefined) return readAtMs >= sinceMs;
      return Math.max(readAtMs, seenAtMs) >= sinceMs - factsFreshMs;
    },
    settle: (served) => keepNewest(settledAtMs, settledMax, modelName(served), clock.now()),
  };
}

/** For the publisher of the configuration. */
export const createLearnedFactsReader = ({
  client,
  clock,
  stack,
}: Omit<ViewDeps, 'view'>): LearnedFactsReader => ({
  async all() {
    const items = await readItems(new Table(client, stack, 'runtime'), [learnedId]);
    const nowMs = clock.now();
    return pickNewestFacts(factsOf(items.get(learnedId)).filter(({ untilMs }) => untilMs > nowMs));
  },
});
