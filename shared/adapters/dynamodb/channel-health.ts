/**
 * Health of candidates in one item of the table `runtime`, which every environment reads with its configuration. Must
 * never make a call wait for a read. `health-item.ts` has the item's form; it is loaded when there is an entry.
 */
import type { Clock } from '../../relay/ports/host.ts';
import {
  type ChannelHealth,
  type HealthChange,
  type HealthEntry,
  factsFreshMs,
  type LearnedFacts,
  type LearnedFactsReader,
} from '../../relay/ports/runtime-stores.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import {
  attributesOf,
  valuesOf,
  conditionalCall,
  type ConditionalReply,
  type TableClient,
  type TableOperations,
} from './table-client.ts';
import type { HealthImage, HealthWrite } from './health-items.ts';
import { cooldownsId, neverRead, type ItemView, type RuntimeItem, getItems } from './runtime-items.ts';
import type { Fact, LearnedFact, ServedModel } from '../../config/learned-fact.ts';

type Updated = TableOperations['UpdateItem']['output'];

const triesMax = 3;
const noEntries: ReadonlyMap<number, HealthEntry> = new Map();

/** The item as last read with the configuration. */
interface ChannelHealthParts {
  client: TableClient;
  clock: Pick<Clock, 'now'>;
  stack: string;
  view: () => ItemView;
}

export class DynamoChannelHealth implements ChannelHealth {
  readonly #parts: ChannelHealthParts;
  /** What the last write of this environment met. It overrides an older read. */
  #written = neverRead;
  #parsed: { item: RuntimeItem | undefined; image: HealthImage } | undefined;

  constructor(parts: ChannelHealthParts) {
    this.#parts = parts;
  }

  async entries(): Promise<ReadonlyMap<number, HealthEntry>> {
    const item = this.#newest();
    for (const name in item) if (name !== 'id') return (await this.#image(item)).entries;
    return noEntries;
  }

  async change(key: number, change: HealthChange): Promise<boolean> {
    const { writeOf } = await import('./health-items.ts');
    let item = this.#newest();
    for (let tries = 0; tries < triesMax; tries += 1) {
      const image = await this.#image(item);
      const before = image.entries.get(key);
      const entry = change(before);
      const write = entry === before ? undefined : writeOf(image, { key, entry, nowMs: this.#nowMs });
      if (!write) return false;
      const reply = await this.#send(write);
      const met = reply.done ? reply.reply.Attributes : reply.item;
      item = met && valuesOf(met);
      this.#written = { item, readAtMs: this.#nowMs };
      if (reply.done) return true;
    }
    return false;
  }

  get #nowMs(): number {
    return this.#parts.clock.now();
  }

  #newest(): RuntimeItem | undefined {
    const read = this.#parts.view();
    return read.readAtMs >= this.#written.readAtMs ? read.item : this.#written.item;
  }

  /** Parses each item once. */
  async #image(item: RuntimeItem | undefined): Promise<HealthImage> {
    if (this.#parsed?.item === item && this.#parsed) return this.#parsed.image;
    const { imageOf } = await import('./health-items.ts');
    const image = imageOf(item);
    this.#parsed = { item, image };
    return image;
  }

  async #send(write: HealthWrite): Promise<ConditionalReply<Updated>> {
    const { updateOf } = await import('./health-items.ts');
    const { update, condition, names, values } = updateOf(write);
    const input = {
      TableName: physicalTableName(this.#parts.stack, 'runtime'),
      Key: attributesOf({ id: cooldownsId }),
      UpdateExpression: update,
      ConditionExpression: condition,
      ExpressionAttributeNames: names,
      ExpressionAttributeValues: attributesOf(values),
      ReturnValues: 'ALL_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    } as const;
    return conditionalCall(() => this.#parts.client.call('UpdateItem', input));
  }
}

// What answers taught, in one item of the table `runtime` that every environment reads with its configuration. Must
// never make a call wait for a read.

// The item `learned` of the table `runtime`: one attribute for each fact, `<fact>|<channel>|<model>`, whose value is the
// fact's end in epoch milliseconds.

export const learnedId = 'learned';

/** A channel's id has no bar; a model's name may not contain one either. */
const form =
  /^(keeps_state|(?:refuses_limit|limit_over_context):\d{1,9}|(?:speaks|wants_back):[\w-]{1,40}|efforts:[a-z+]{1,60})\|([^|]+)\|([^|]+)$/;

const factName = ({ fact, channel, model }: ServedModel & { fact: Fact }): string =>
  `${fact}|${channel}|${model}`;

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

interface LearnedFactsParts {
  client: TableClient;
  clock: Pick<Clock, 'now'>;
  stack: string;
  view: () => ItemView;
}

export class DynamoLearnedFacts implements LearnedFacts {
  readonly #parts: LearnedFactsParts;
  /** Facts that this environment learned. They override an older read. */
  readonly #own = new Map<string, LearnedFact>();
  /** When this environment last saw for itself that a model needs no state, the oldest first. */
  readonly #settled = new Map<string, number>();
  #read: { item: RuntimeItem | undefined; facts: LearnedFact[] } = { item: undefined, facts: [] };

  constructor(parts: LearnedFactsParts) {
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
    const name = factName(fact);
    if (this.#own.size < factsMax) this.#own.set(name, fact);
    const nowMs = this.#parts.clock.now();
    const known = this.#facts();
    const running = known.filter(({ untilMs }) => untilMs > nowMs).map(factName);
    if (running.length >= factsMax && !running.includes(name)) return;
    const ended = known
      .filter((one) => one.untilMs <= nowMs && factName(one) !== name)
      .slice(0, removedAtOnce)
      .map((one, index) => [`#ended${index}`, factName(one)] as const);
    const removed = ended.map(([placeholder]) => placeholder).join(', ');
    const input = {
      TableName: physicalTableName(this.#parts.stack, 'runtime'),
      Key: attributesOf({ id: learnedId }),
      UpdateExpression: `SET #fact = :until${removed === '' ? '' : ` REMOVE ${removed}`}`,
      ConditionExpression: isNewer,
      ExpressionAttributeNames: { '#fact': name, ...Object.fromEntries(ended) },
      ExpressionAttributeValues: attributesOf({ ':until': fact.untilMs }),
    };
    await conditionalCall(() => this.#parts.client.call('UpdateItem', input));
  }

  /** The facts of the item as last read, parsed once. */
  #facts(): LearnedFact[] {
    const { item } = this.#parts.view();
    if (item !== this.#read.item) this.#read = { item, facts: factsOf(item) };
    return this.#read.facts;
  }

  isSettled(served: ServedModel, sinceMs: number): boolean {
    const { readAtMs } = this.#parts.view();
    const seenAtMs = this.#settled.get(nameOf(served));
    if (readAtMs >= sinceMs || seenAtMs === undefined) return readAtMs >= sinceMs;
    return Math.max(readAtMs, seenAtMs) >= sinceMs - factsFreshMs;
  }

  settle(served: ServedModel): void {
    const name = nameOf(served);
    this.#settled.delete(name);
    const [oldest] = this.#settled.keys();
    if (this.#settled.size >= settledMax && oldest !== undefined) this.#settled.delete(oldest);
    this.#settled.set(name, this.#parts.clock.now());
  }
}

const isNewer = 'attribute_not_exists(#fact) OR #fact < :until';

const nameOf = ({ channel, model }: ServedModel): string => `${channel}|${model}`;

/** For the publisher of the configuration. */
export const dynamoLearnedFactsReader = ({
  client,
  clock,
  stack,
}: Omit<LearnedFactsParts, 'view'>): LearnedFactsReader => ({
  async all() {
    const items = await getItems({ client, name: physicalTableName(stack, 'runtime') }, [learnedId]);
    const nowMs = clock.now();
    return factsOf(items.get(learnedId)).filter(({ untilMs }) => untilMs > nowMs);
  },
});
