/** Reads a table's stream and calls its function with the batches of each shard in order, as Lambda's event source mappings do. */
import { setTimeout as sleep } from 'node:timers/promises';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { DynamoDBRecord } from 'aws-lambda';
import type { AwsCalls } from '../../shared/adapters/aws/aws-calls.ts';
import type { Emulator } from './host/emulator.ts';
import { type StackLog, StartError } from './host/messages.ts';
import type { LocalFunction } from './lambda/local-function.ts';
import { localRegion } from './host/local-options.ts';

/** The resolved properties of AWS::Lambda::EventSourceMapping that are emulated. The maximum age of records is ignored. */
export interface MappingProperties {
  EventSourceArn: string;
  StartingPosition: string;
  BatchSize: number;
  MaximumBatchingWindowInSeconds?: number;
  BisectBatchOnFunctionError?: boolean;
  MaximumRetryAttempts: number;
  FunctionResponseTypes?: string[];
  FilterCriteria?: { Filters: { Pattern: string }[] };
}

export interface Mapping {
  /** Logical id, under which the read position is stored. */
  id: string;
  properties: MappingProperties;
  target: LocalFunction;
  /** The last sequence number that an earlier run of the function has covered. Only newer records are delivered; default: all. */
  lastCoveredRecord?: number | undefined;
}

interface MappingHost {
  /** Calls DynamoDB Streams. */
  callAws: AwsCalls;
  checkpoints: Checkpoints;
  log: StackLog;
  /** The emulator's. With it, a stream is read only after a new record. */
  newestRecord?: Emulator['newestRecord'];
}

// Lambda polls each shard four times a second.
const pollIntervalMs = 250;
/**
 * Shorter than on AWS (5 s), so that a developer soon sees a charge. Without a window, a call that took a second invoked two
 * functions twice, which was a fifth of the processor time of all functions in the tests.
 */
const batchingWindowMsMax = 1000;
const firstRetryMs = 100;
const longestRetryMs = 5000;

/**
 * Resolves when the starting positions are set: every record written later is delivered. Throws StartError for what is not
 * emulated: mappings of another kind than those of this repository, and filters that they do not have.
 * @returns stops it, and resolves when the running requests have ended. A batch in delivery counts as not delivered.
 */
export async function startMapping(
  { id, properties, target, lastCoveredRecord = -1 }: Mapping,
  { callAws, checkpoints, log, newestRecord }: MappingHost,
): Promise<() => Promise<void>> {
  const { EventSourceArn: StreamArn, BatchSize: Limit, FilterCriteria, ...kind } = properties;
  const { name } = target.settings;
  const reports = kind.FunctionResponseTypes?.includes('ReportBatchItemFailures');
  if (kind.StartingPosition !== 'TRIM_HORIZON' || !kind.BisectBatchOnFunctionError || !reports)
    throw new StartError(
      `${id}: only mappings that begin at the oldest record, halve and report are emulated`,
    );
  const passesFilter = createFilter((FilterCriteria?.Filters ?? []).map(({ Pattern }) => Pattern));
  const isWanted = (record: DynamoDBRecord): boolean =>
    passesFilter(record) && Number(numberOf(record)) > lastCoveredRecord;
  const windowMs = Math.min((kind.MaximumBatchingWindowInSeconds ?? 0) * 1000, batchingWindowMsMax);
  const stopping = new AbortController();
  const shards = new Map<string, Promise<void>>();

  /** Resolves to false when the mapping is stopping. */
  const wait = async (milliseconds: number): Promise<boolean> => {
    await sleep(milliseconds, undefined, { signal: stopping.signal }).catch(() => {});
    return !stopping.signal.aborted;
  };
  const logReadFailure = (error: unknown): void => {
    if (!stopping.signal.aborted) log(`[${name}] reading the stream failed: ${(error as Error).message}`);
  };
  const delivery: Delivery = {
    retriesMax: kind.MaximumRetryAttempts,
    invoke: (records) => target.call({ Records: records }),
    pause: (attempt) => wait(Math.min(firstRetryMs * 2 ** (attempt - 1), longestRetryMs)),
    discard: (records, reason) =>
      log(
        `[${name}] gave up ${records.length} stream records ` +
          `(${numberOf(records[0])} to ${numberOf(records.at(-1))}): ${reason}`,
      ),
  };

  const findFirstIterator = async (shard: string) => {
    const iterator = async (from: { ShardIteratorType: string; SequenceNumber?: string }) => {
      const found = await callAws('GetShardIterator', { StreamArn, ShardId: shard, ...from });
      return (found as { ShardIterator?: string }).ShardIterator;
    };
    const position = checkpoints.get(id, shard);
    const requestOldest = () => iterator({ ShardIteratorType: 'TRIM_HORIZON' });
    if (position === undefined) return requestOldest();
    // The stream refuses a position older than its oldest record.
    return iterator({ ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', SequenceNumber: position }).catch(
      requestOldest,
    );
  };
  const readRecords = async (iterator: string) => {
    const read = (await callAws('GetRecords', { ShardIterator: iterator, Limit })) as StreamPage;
    const records = (read.Records ?? []).map((record) => completeRecord(record, StreamArn));
    return { records, nextIterator: read.NextShardIterator };
  };
  const deliver = async (shard: string, records: DynamoDBRecord[]): Promise<void> => {
    const wanted = records.filter(isWanted);
    if (wanted.length > 0) await deliverBatch(delivery, wanted);
    const last = numberOf(records.at(-1));
    if (last !== undefined && !stopping.signal.aborted) checkpoints.set(id, shard, last);
  };
  const findNewest = (): unknown => newestRecord?.(StreamArn.split('/')[1] ?? '');
  /** @param newest the newest record when the last read began, which returned it; undefined if unknown */
  const waitForRecords = async (newest: unknown): Promise<void> => {
    while (await wait(pollIntervalMs)) if (newest === undefined || findNewest() !== newest) return;
  };
  const readShard = async (shard: string, first: string | undefined): Promise<void> => {
    for (let iterator = first; iterator !== undefined && !stopping.signal.aborted;)
      try {
        let newest = findNewest();
        let { records, nextIterator } = await readRecords(iterator);
        if (windowMs > 0 && records.length < Limit && records.some(isWanted)) {
          if (!(await wait(windowMs))) return;
          // The same iterator returns these records and those that have come since.
          newest = findNewest();
          ({ records, nextIterator } = await readRecords(iterator));
        }
        await deliver(shard, records);
        iterator = nextIterator;
        if (records.length === 0 || Number(numberOf(records.at(-1))) === newest) await waitForRecords(newest);
      } catch (error) {
        logReadFailure(error);
        if (!(await wait(longestRetryMs))) return;
        iterator = await findFirstIterator(shard).catch(() => iterator);
      }
  };
  const findShards = async (): Promise<void> => {
    const { StreamDescription } = (await callAws('DescribeStream', { StreamArn })) as DescribedStream;
    for (const { ShardId: shard } of StreamDescription.Shards)
      if (!shards.has(shard)) shards.set(shard, readShard(shard, await findFirstIterator(shard)));
  };
  const watchShards = async (): Promise<void> => {
    while (await wait(20 * pollIntervalMs)) await findShards().catch(logReadFailure);
  };

  await findShards();
  const watching = watchShards();
  return async () => {
    stopping.abort();
    await watching;
    await Promise.all(shards.values());
  };
}

type Condition = string | number | boolean | null | { prefix: string };
interface Pattern {
  [field: string]: Pattern | Condition[];
}

/**
 * Reads the event filter patterns (JSON texts) of a mapping. A value passes if one pattern matches or if there are none.
 * Throws StartError for an unknown operator.
 */
export function createFilter(texts: string[]): (value: unknown) => boolean {
  const patterns = texts.map((text) => JSON.parse(text, refuseOperators) as Pattern);
  return (value) => patterns.length === 0 || patterns.some((pattern) => matches(pattern, value));
}

function refuseOperators(_field: string, conditions: unknown): unknown {
  for (const condition of Array.isArray(conditions) ? (conditions as Condition[]) : [])
    if (typeof condition === 'object' && condition !== null && !('prefix' in condition))
      throw new StartError(`unknown operator ${Object.keys(condition).join()} in an event filter`);
  return conditions;
}

const matches = (pattern: Pattern, value: unknown): boolean =>
  Object.entries(pattern).every(([name, wanted]) => {
    const found = (value as Record<string, unknown> | null | undefined)?.[name];
    if (!Array.isArray(wanted)) return matches(wanted, found);
    return wanted.some((condition) =>
      typeof condition === 'object' && condition !== null
        ? typeof found === 'string' && found.startsWith(condition.prefix)
        : found === condition,
    );
  });

interface Delivery {
  retriesMax: number;
  /** Calls the function; rejects when it fails. */
  invoke(records: DynamoDBRecord[]): Promise<unknown>;
  /** Waits before the next try; resolves to false when delivery must stop. */
  pause(attempt: number): Promise<boolean>;
  /** Called for records without retries left. */
  discard(records: DynamoDBRecord[], reason: string): void;
}

/**
 * Delivers one batch like an event source mapping. A failed batch is halved, which uses no retry, and a record that fails alone
 * is retried, then discarded. Records before a reported item failure count as done. Resolves when every record is processed
 * or discarded, or when `pause` resolves to false.
 */
export async function deliverBatch(delivery: Delivery, records: DynamoDBRecord[]): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const failed = await tryOnce(delivery, records);
    if (failed === undefined) return;
    const isAlone = records.length === 1;
    if (isAlone && attempt > delivery.retriesMax) return delivery.discard(records, failed.reason);
    if (!(await delivery.pause(attempt))) return;
    if (isAlone) continue;
    const end = failed.from > 0 ? records.length : Math.ceil(records.length / 2);
    await deliverBatch(delivery, records.slice(failed.from, end));
    if (end < records.length) await deliverBatch(delivery, records.slice(end));
    return;
  }
}

/** @returns the index of the first record that is not done; undefined when all are */
async function tryOnce(
  delivery: Delivery,
  records: DynamoDBRecord[],
): Promise<{ from: number; reason: string } | undefined> {
  let answer: unknown;
  try {
    answer = await delivery.invoke(records);
  } catch (error) {
    return { from: 0, reason: (error as Error).message };
  }
  const { batchItemFailures: failures = [] } = (answer ?? {}) as {
    batchItemFailures?: { itemIdentifier?: string }[];
  };
  if (failures.length === 0) return undefined;
  const positions = failures.map(({ itemIdentifier }) =>
    records.findIndex((record) => numberOf(record) === itemIdentifier),
  );
  // An identifier that is not in the batch fails the whole batch, as on AWS.
  return { from: Math.max(0, Math.min(...positions)), reason: 'the function reported item failures' };
}

const numberOf = (record: DynamoDBRecord | undefined): string | undefined => record?.dynamodb?.SequenceNumber;

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

interface DescribedStream {
  StreamDescription: { Shards: { ShardId: string }[] };
}

export interface StreamPage {
  Records?: DynamoDBRecord[];
  NextShardIterator?: string;
}

/** Adds the fields of Lambda's events to a record of a table's stream. */
export const completeRecord = (record: DynamoDBRecord, eventSourceARN: string): DynamoDBRecord => ({
  ...record,
  eventSource: 'aws:dynamodb',
  awsRegion: localRegion,
  eventSourceARN,
  dynamodb: {
    ...record.dynamodb,
    ApproximateCreationDateTime: Math.floor(record.dynamodb?.ApproximateCreationDateTime ?? 0),
  },
});
