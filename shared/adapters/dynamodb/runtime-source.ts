/**
 * Serves the configuration, the health of candidates and learned facts from one read of `runtime` every few seconds. A
 * request must never wait long for a newer configuration while an older one is available, and never for health or facts.
 */
import {
  parseWordFact,
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
import { keepNewest } from '../../wire/keep-newest.ts';
import { readHealthImage, buildHealthUpdate, planHealthWrite, type HealthImage } from './health-items.ts';
import {
  cooldownsId,
  readItems,
  pointerId,
  decodePointer,
  readSnapshot,
  type RuntimeItem,
} from './runtime-items.ts';
import { buildExpressions, setAndRemove, Table, valuesOf, type StoreDeps } from './table-client.ts';

/** With the compile, an edit is live within 10 s. */
const freshMs = factsFreshMs;
/** A request waits this long for a newer configuration while it has an older one. */
const waitMsMax = 300;
/** Pause after a failed read, while there is an older configuration. */
const retryAfterMs = 1000;
/** For answers that must not come from an old configuration: two reads of a second each. */
const renewMsMax = 2500;
/** The first request cannot be answered otherwise. */
const firstReadMsMax = 8000;
const firstPauseMs = 50;
const pauseMsMax = 400;

interface ConfigSourceDeps extends StoreDeps {
  clock: Clock;
  random: Random;
  log: Log;
}

interface ServedConfig {
  snapshot: Snapshot;
  pointer?: Pointer;
  /** Epoch milliseconds at which the read began. */
  checkedAt: number;
}

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
    // A read delayed by a freeze must not overwrite a later one.
    if (config && config.checkedAt > startedAt) return;
    cooldowns = { item: items.get(cooldownsId), readAtMs: startedAt };
    learned = { item: items.get(learnedId), readAtMs: startedAt };
    const pointer = items.get(pointerId);
    const next = await follow(pointer && decodePointer(pointer));
    if (!config || config.checkedAt <= startedAt) config = { ...next, checkedAt: startedAt };
  };

  /** Reads a snapshot only if the pointer names another one. */
  const follow = async (pointer: Pointer | undefined): Promise<Omit<ServedConfig, 'checkedAt'>> => {
    if (!pointer) return config ?? { snapshot: createEmptySnapshot(Math.floor(clock.now() / 1000)) };
    const { version, digest, format, copies } = pointer;
    if (config?.pointer?.version === version && config.pointer.digest === digest) return config;
    // Random copies spread thousands of environments, and lead a repeat away from a throttled item.
    const copy = Math.floor(random.next() * copies);
    if (format === snapshotFormat) return { snapshot: await readSnapshot(table, pointer, copy), pointer };
    log.event('config_format_unknown', { version, format });
    if (config) return config;
    throw new StoreUnavailable('The configuration has a format that this function does not know.');
  };

  /** Joins the pending read, unless it is 8 s old: then a freeze interrupted it. */
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

  /** Waits for a read until a time. Returns its error; undefined: it was read, or the time is up. */
  const joinUntil = async ({ startedAt, done }: Reading, untilMs: number): Promise<unknown> => {
    let failure: unknown;
    const settled = done.catch((error: unknown) => {
      if (failedAt < startedAt) log.fault('config', error);
      failedAt = clock.now();
      failure = error;
    });
    const leftMs = untilMs - clock.now();
    // It has been pending as long as a request may wait.
    if (leftMs <= 0) return undefined;
    await within(clock, leftMs, { work: settled, late: undefined });
    return failure;
  };

  const refresh = async (msMax = waitMsMax): Promise<void> => {
    const joined = joinRead();
    await joinUntil(joined, joined.startedAt + msMax);
  };

  const renew = async (ageMsMax: number): Promise<Snapshot> => {
    // A read that began later counts as new, however long it takes.
    const sinceMs = clock.now() - ageMsMax;
    const untilMs = clock.now() + (config ? renewMsMax : firstReadMsMax);
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMsMax, pauseMs * 2)) {
      if (config && config.checkedAt > sinceMs) return config.snapshot;
      const cause = await joinUntil(joinRead(), untilMs);
      if (config && config.checkedAt > sinceMs) return config.snapshot;
      const isTransient = cause === undefined || cause instanceof StoreUnavailable;
      // Callers with an older configuration retry together, so that a failing store gets one request a second.
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
    cooldowns: () => cooldowns,
    learned: () => learned,
    /** Reads now and waits at most this long. Never rejects. */
    refresh,
  } satisfies ConfigSource & Record<string, unknown>;
}

interface ViewDeps extends StoreDeps {
  view: () => ItemView;
}

const triesMax = 3;

export function createChannelHealth({ client, clock, stack, view }: ViewDeps): ChannelHealth {
  const table = new Table(client, stack, 'runtime');
  /** This environment's last write, which overrides older reads. */
  let written = neverRead;
  let parsed = { item: undefined as RuntimeItem | undefined, image: readHealthImage(undefined) };
  const pickNewestItem = () => {
    const read = view();
    return read.readAtMs >= written.readAtMs ? read.item : written.item;
  };
  const parseImage = (item: RuntimeItem | undefined): HealthImage => {
    if (parsed.item !== item) parsed = { item, image: readHealthImage(item) };
    return parsed.image;
  };
  return {
    entries: async () => parseImage(pickNewestItem()).entries,
    async change(key, change) {
      let item = pickNewestItem();
      for (let tries = 0; tries < triesMax; tries += 1) {
        const image = parseImage(item);
        const before = image.entries.get(key);
        const entry = change(before);
        const write =
          entry === before ? undefined : planHealthWrite(image, { key, entry, nowMs: clock.now() });
        if (!write) return false;
        const returned = { ReturnValues: 'ALL_NEW', ReturnValuesOnConditionCheckFailure: 'ALL_OLD' } as const;
        const reply = await table.update({ id: cooldownsId }, { ...buildHealthUpdate(write), ...returned });
        const met = reply.done ? reply.reply.Attributes : reply.item;
        item = met && valuesOf(met);
        written = { item, readAtMs: clock.now() };
        if (reply.done) return true;
      }
      return false;
    },
  };
}

// The item `learned` has an attribute `<fact>|<channel>|<model>` for each fact. Its value is the fact's end in epoch
// milliseconds.

const learnedId = 'learned';

/** Ids of channels and names of models contain no bar. */
const form =
  /^(keeps_state|(?:refuses_limit|limit_over_context):\d{1,9}|[a-z_]{3,30}:[\w+-]{0,60})\|([^|]+)\|([^|]+)$/;

const nameModel = ({ channel, model }: ServedModel): string => `${channel}|${model}`;
const nameFact = ({ fact, ...served }: ServedModel & { fact: Fact }): string =>
  `${fact}|${nameModel(served)}`;

const parseFacts = (item: RuntimeItem | undefined): LearnedFact[] =>
  Object.entries(item ?? {}).flatMap(([attribute, untilMs]) => {
    const [, fact, channel, model] = form.exec(attribute) ?? [];
    if (fact === undefined || channel === undefined || model === undefined) return [];
    return typeof untilMs === 'number' ? [{ fact: fact as Fact, channel, model, untilMs }] : [];
  });

/** Keeps the item under 40 KB, because every environment reads it every few seconds. */
const factsMax = 200;
/** One write removes so many facts that ended or were replaced. */
const removedAtOnce = 20;
const settledMax = 2_000;
const isNewer = 'attribute_not_exists(#fact) OR #fact < :until';

export function createLearnedFacts({ client, clock, stack, view }: ViewDeps): LearnedFacts {
  /** Override older reads. */
  const learnedHere = new Map<string, LearnedFact>();
  /** When this environment last saw that a model needs no state, oldest first. */
  const settledAtMs = new Map<string, number>();
  let parsed = { item: undefined as RuntimeItem | undefined, facts: parseFacts(undefined) };
  const readFacts = (): LearnedFact[] => {
    const { item } = view();
    if (item !== parsed.item) parsed = { item, facts: parseFacts(item) };
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
      // Vendors choose their words, so words may fill only half of the room: the rest is for what refusals taught.
      const most = parseWordFact(fact.fact) ? factsMax / 2 : factsMax;
      if (running.length >= most && !running.some((one) => nameFact(one) === name)) return;
      const removed = ended
        .map(nameFact)
        .filter((one) => one !== name)
        .slice(0, removedAtOnce)
        .map((one, index) => [`#ended${index}`, one] as const);
      const placeholders = removed.map(([placeholder]) => placeholder);
      const UpdateExpression = setAndRemove(['#fact = :until'], placeholders);
      const write = buildExpressions(
        { UpdateExpression, ConditionExpression: isNewer },
        { ':until': fact.untilMs },
        { '#fact': name, ...Object.fromEntries(removed) },
      );
      await new Table(client, stack, 'runtime').update({ id: learnedId }, write);
    },
    isSettled(served, sinceMs) {
      const { readAtMs } = view();
      const seenAtMs = settledAtMs.get(nameModel(served));
      if (readAtMs >= sinceMs || seenAtMs === undefined) return readAtMs >= sinceMs;
      return Math.max(readAtMs, seenAtMs) >= sinceMs - factsFreshMs;
    },
    settle: (served) => keepNewest(settledAtMs, settledMax, nameModel(served), clock.now()),
  };
}

export const createLearnedFactsReader = ({ client, clock, stack }: StoreDeps): LearnedFactsReader => ({
  async all() {
    const items = await readItems(new Table(client, stack, 'runtime'), [learnedId]);
    const nowMs = clock.now();
    return pickNewestFacts(parseFacts(items.get(learnedId)).filter(({ untilMs }) => untilMs > nowMs));
  },
});
