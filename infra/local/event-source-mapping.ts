import { setTimeout as sleep } from 'node:timers/promises';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import {
  DescribeStreamCommand,
  DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  type GetShardIteratorInput,
  type AttributeValue,
  type _Record,
} from '@aws-sdk/client-dynamodb-streams';
import { type StackLog, StartError } from './host/messages.ts';
import type { LocalFunction } from './lambda/local-function.ts';
import { localRegion } from './host/local-options.ts';

// Lambda polls each shard four times a second.
const pollIntervalMs = 250;
const firstRetryMs = 100;
const longestRetryMs = 5000;

interface MappingParts {
  settings: MappingSettings;
  client: DynamoDBStreamsClient;
  checkpoints: Checkpoints;
  log: StackLog;
}

/** Reads one table's stream and calls its function with the batches of each shard in order. */
export class EventSourceMapping {
  readonly #parts: MappingParts;
  readonly #stopping = new AbortController();
  readonly #shards = new Map<string, Promise<void>>();
  #polling: Promise<void> | undefined;

  constructor(parts: MappingParts) {
    this.#parts = parts;
  }

  /** Resolves when the starting positions are set. Every record written later is delivered. */
  async start(): Promise<void> {
    await this.#findShards(this.#parts.settings.startingPosition);
    this.#polling = this.#watchShards();
  }

  /** Resolves when the running requests have ended. A batch in delivery counts as not delivered. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#polling;
    await Promise.all(this.#shards.values());
  }

  async #watchShards(): Promise<void> {
    while (await this.#wait(20 * pollIntervalMs))
      // A new shard continues an earlier one, so it is read from its first record.
      await this.#findShards('TRIM_HORIZON').catch((error) => this.#complain(error));
  }

  async #findShards(startingPosition: StartingPosition): Promise<void> {
    const { client, settings } = this.#parts;
    const { StreamDescription } = await client.send(
      new DescribeStreamCommand({ StreamArn: settings.streamArn }),
    );
    for (const { ShardId: shard } of StreamDescription?.Shards ?? []) {
      if (shard === undefined || this.#shards.has(shard)) continue;
      const iterator = await this.#firstIterator(shard, startingPosition);
      this.#shards.set(shard, this.#readShard(shard, iterator));
    }
  }

  async #firstIterator(shard: string, startingPosition: StartingPosition): Promise<string | undefined> {
    const { client, checkpoints, settings } = this.#parts;
    const position = checkpoints.get(settings.id, shard);
    const iterator = async (from: Pick<GetShardIteratorInput, 'ShardIteratorType' | 'SequenceNumber'>) => {
      const place = { StreamArn: settings.streamArn, ShardId: shard, ...from };
      return (await client.send(new GetShardIteratorCommand(place))).ShardIterator;
    };
    if (position === undefined) return iterator({ ShardIteratorType: startingPosition });
    // The stream refuses a position older than its oldest record; then reading starts at that record.
    return iterator({ ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', SequenceNumber: position }).catch(() =>
      iterator({ ShardIteratorType: 'TRIM_HORIZON' }),
    );
  }

  async #readShard(shard: string, first: string | undefined): Promise<void> {
    const { client, settings } = this.#parts;
    let iterator = first;
    while (iterator !== undefined && !this.#stopping.signal.aborted) {
      try {
        const read = await client.send(
          new GetRecordsCommand({ ShardIterator: iterator, Limit: settings.batchSize }),
        );
        const records = (read.Records ?? []).map((record) => toStreamRecord(record, settings.streamArn));
        await this.#deliver(shard, records);
        iterator = read.NextShardIterator;
        if (records.length === 0) await this.#wait(pollIntervalMs);
      } catch (error) {
        this.#complain(error);
        if (!(await this.#wait(longestRetryMs))) return;
        iterator = await this.#firstIterator(shard, 'TRIM_HORIZON').catch(() => iterator);
      }
    }
  }

  async #deliver(shard: string, records: StreamRecord[]): Promise<void> {
    const last = records.at(-1);
    if (last === undefined) return;
    const { settings, checkpoints } = this.#parts;
    const wanted = records.filter(settings.filter);
    if (wanted.length > 0) await deliverBatch(this.#delivery(), wanted);
    if (!this.#stopping.signal.aborted) checkpoints.set(settings.id, shard, last.dynamodb.SequenceNumber);
  }

  #delivery(): Delivery {
    const { target, policy } = this.#parts.settings;
    return {
      policy,
      invoke: (records) => target.call({ Records: records }),
      pause: (attempt) => this.#wait(Math.min(firstRetryMs * 2 ** (attempt - 1), longestRetryMs)),
      discard: (records, reason) =>
        this.#parts.log(
          `[${target.settings.name}] gave up ${records.length} stream records ` +
            `(${records[0]?.dynamodb.SequenceNumber} to ${records.at(-1)?.dynamodb.SequenceNumber}): ${reason}`,
        ),
    };
  }

  /** Resolves to false when the mapping is stopping. */
  async #wait(milliseconds: number): Promise<boolean> {
    const { signal } = this.#stopping;
    await sleep(milliseconds, undefined, { signal }).catch(() => {});
    return !signal.aborted;
  }

  #complain(error: unknown): void {
    const { settings, log } = this.#parts;
    if (!this.#stopping.signal.aborted)
      log(`[${settings.target.settings.name}] reading the stream failed: ${(error as Error).message}`);
  }
}

type StartingPosition = 'TRIM_HORIZON' | 'LATEST';

export interface MappingSettings {
  /** Logical id, under which the read position is stored. */
  id: string;
  streamArn: string;
  startingPosition: StartingPosition;
  batchSize: number;
  policy: DeliveryPolicy;
  filter: Filter;
  target: LocalFunction;
}

/**
 * The resolved properties of AWS::Lambda::EventSourceMapping that are emulated. Batching windows only delay,
 * so they are ignored.
 */
export interface MappingProperties {
  EventSourceArn: string;
  StartingPosition?: StartingPosition;
  BatchSize?: number;
  BisectBatchOnFunctionError?: boolean;
  MaximumRetryAttempts?: number;
  FunctionResponseTypes?: string[];
  FilterCriteria?: { Filters?: { Pattern: string }[] };
  Enabled?: boolean;
}

/** Applies Lambda's defaults for DynamoDB streams. Throws StartError for an unsupported filter. */
export function readMapping(
  id: string,
  properties: MappingProperties,
  target: LocalFunction,
): MappingSettings {
  return {
    id,
    target,
    streamArn: properties.EventSourceArn,
    startingPosition: properties.StartingPosition ?? 'TRIM_HORIZON',
    batchSize: properties.BatchSize ?? 100,
    filter: createFilter((properties.FilterCriteria?.Filters ?? []).map(({ Pattern }) => Pattern)),
    policy: {
      retriesMax: properties.MaximumRetryAttempts ?? -1,
      bisectOnError: properties.BisectBatchOnFunctionError ?? false,
      reportsItemFailures: properties.FunctionResponseTypes?.includes('ReportBatchItemFailures') ?? false,
    },
  };
}

type Condition = string | number | boolean | null | Record<string, unknown>;

/** True when the value passes. */
type Filter = (value: unknown) => boolean;

/**
 * Compiles the event filter patterns (JSON texts) of a mapping. A value passes if one pattern matches or if
 * there are none. Throws StartError for an unknown operator.
 */
export function createFilter(patterns: string[]): Filter {
  if (patterns.length === 0) return () => true;
  const filters = patterns.map((pattern) => compile(JSON.parse(pattern) as Record<string, unknown>));
  return (value) => filters.some((filter) => filter(value));
}

function compile(pattern: Record<string, unknown>): Filter {
  const fields = Object.entries(pattern).map(([name, wanted]) => {
    const test = Array.isArray(wanted)
      ? anyOf(wanted as Condition[])
      : compile(wanted as Record<string, unknown>);
    return { name, test };
  });
  return (value) => {
    const holder = typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
    return fields.every(({ name, test }) => test(holder[name]));
  };
}

function anyOf(conditions: Condition[]): Filter {
  const tests = conditions.map((condition): Filter => {
    if (typeof condition !== 'object' || condition === null) return (value) => value === condition;
    const [operator, operand] = Object.entries(condition)[0] ?? [];
    if (operator !== 'prefix') throw new StartError(`unknown operator ${operator} in an event filter`);
    return (value) => typeof value === 'string' && value.startsWith(String(operand));
  });
  return (value) => tests.some((test) => test(value));
}

export interface DeliveryPolicy {
  /** -1: no limit. */
  retriesMax: number;
  bisectOnError: boolean;
  reportsItemFailures: boolean;
}

interface Delivery {
  policy: DeliveryPolicy;
  /** Calls the function; rejects when it fails. */
  invoke(records: StreamRecord[]): Promise<unknown>;
  /** Waits before the next try; resolves to false when delivery must stop. */
  pause(attempt: number): Promise<boolean>;
  /** Called for records without retries left. */
  discard(records: StreamRecord[], reason: string): void;
}

/**
 * Delivers one batch like an event source mapping. A failed batch is retried, halved if the policy wants
 * that, and discarded after its retries. Records before a reported item failure count as done. Halving uses
 * no retry. Resolves when every record is processed or discarded, or when `pause` resolves to false.
 */
export async function deliverBatch(delivery: Delivery, records: StreamRecord[]): Promise<void> {
  const { policy } = delivery;
  let rest = records;
  for (let attempt = 1; ; attempt += 1) {
    const outcome = await tryOnce(delivery, rest);
    if (outcome.failedFrom === undefined) return;
    const progressed = outcome.failedFrom > 0;
    rest = rest.slice(outcome.failedFrom);
    if (policy.bisectOnError && (progressed || rest.length > 1)) {
      if (!(await delivery.pause(attempt))) return;
      const middle = progressed ? rest.length : Math.ceil(rest.length / 2);
      await deliverBatch(delivery, rest.slice(0, middle));
      if (middle < rest.length) await deliverBatch(delivery, rest.slice(middle));
      return;
    }
    if (policy.retriesMax >= 0 && attempt > policy.retriesMax) return delivery.discard(rest, outcome.reason);
    if (!(await delivery.pause(attempt))) return;
  }
}

interface Outcome {
  /** Index of the first record that is not done; undefined when all are. */
  failedFrom?: number;
  reason: string;
}

async function tryOnce(delivery: Delivery, records: StreamRecord[]): Promise<Outcome> {
  try {
    const answer = await delivery.invoke(records);
    if (!delivery.policy.reportsItemFailures) return { reason: '' };
    return reportedFailure(answer, records);
  } catch (error) {
    return { failedFrom: 0, reason: (error as Error).message };
  }
}

function reportedFailure(answer: unknown, records: StreamRecord[]): Outcome {
  const failures =
    (answer as { batchItemFailures?: { itemIdentifier?: string }[] } | null)?.batchItemFailures ?? [];
  if (failures.length === 0) return { reason: '' };
  const reason = 'the function reported item failures';
  const positions = failures.map(({ itemIdentifier }) =>
    records.findIndex((record) => record.dynamodb.SequenceNumber === itemIdentifier),
  );
  // An identifier that is not in the batch fails the whole batch, as on AWS.
  return { failedFrom: Math.max(0, Math.min(...positions)), reason };
}

/** The read position of each mapping in each shard: the sequence number of the last record. */
interface Checkpoints {
  get(mapping: string, shard: string): string | undefined;
  set(mapping: string, shard: string, sequenceNumber: string): void;
}

/** Stores positions in a file, because on AWS they survive a restart. No folder: nothing is stored. */
export function openCheckpoints(folder: string | undefined): Checkpoints {
  const file = folder === undefined ? undefined : path.join(folder, 'stream-positions.json');
  const positions = new Map(Object.entries(file === undefined ? {} : readPositions(file)));
  return {
    get: (mapping, shard) => positions.get(`${mapping} ${shard}`),
    set(mapping, shard, sequenceNumber) {
      positions.set(`${mapping} ${shard}`, sequenceNumber);
      if (file === undefined) return;
      writeFileSync(`${file}.new`, JSON.stringify(Object.fromEntries(positions)));
      renameSync(`${file}.new`, file);
    },
  };
}

function readPositions(file: string): Record<string, string> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;
  } catch {
    return {};
  }
}

/** A record of a table's stream in the form that Lambda passes to a function. */
export interface StreamRecord {
  eventID: string;
  eventName: string;
  eventVersion: string;
  eventSource: string;
  awsRegion: string;
  eventSourceARN: string;
  dynamodb: {
    ApproximateCreationDateTime: number;
    Keys?: unknown;
    NewImage?: unknown;
    OldImage?: unknown;
    SequenceNumber: string;
    SizeBytes: number;
    StreamViewType: string;
  };
}

export function toStreamRecord(record: _Record, streamArn: string): StreamRecord {
  const { dynamodb } = record;
  return {
    eventID: record.eventID ?? '',
    eventName: record.eventName ?? '',
    eventVersion: record.eventVersion ?? '1.1',
    eventSource: 'aws:dynamodb',
    awsRegion: localRegion,
    eventSourceARN: streamArn,
    dynamodb: {
      ApproximateCreationDateTime: Math.floor((dynamodb?.ApproximateCreationDateTime?.getTime() ?? 0) / 1000),
      ...(dynamodb?.Keys && { Keys: imageToJson(dynamodb.Keys) }),
      ...(dynamodb?.NewImage && { NewImage: imageToJson(dynamodb.NewImage) }),
      ...(dynamodb?.OldImage && { OldImage: imageToJson(dynamodb.OldImage) }),
      SequenceNumber: dynamodb?.SequenceNumber ?? '',
      SizeBytes: dynamodb?.SizeBytes ?? 0,
      StreamViewType: dynamodb?.StreamViewType ?? '',
    },
  };
}

const imageToJson = (image: Record<string, AttributeValue>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(image).map(([name, value]) => [name, toJson(value)]));

/** Lambda's events are JSON, with bytes in base64. */
function toJson(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, toJson(inner)]));
}
