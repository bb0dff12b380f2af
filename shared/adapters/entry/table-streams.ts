/**
 * Builds Lambda handlers of table streams. Each passes records to a job, and reports and skips poisoned ones. After a failure of the
 * store, the event source mapping retries the batch from that record on, splits it, and finally drops it. Any other failure is a fault in the
 * code: the run fails, so that Lambda counts an error and a deployment of bad code is rolled back.
 */
import type { Context, DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent } from 'aws-lambda';
import type { Log, MetricName, Metrics } from '../../relay/ports/telemetry.ts';
import { Poisoned, StoreBusy, StoreUnavailable } from '../../relay/ports/store-errors.ts';
import { markedTables, type WrittenRow } from '../../relay/ports/config-store.ts';
import { decodeImage, valuesOf, type Attributes } from '../dynamodb/table-client.ts';
import { tableSchemas } from '../../tables/table-schemas.ts';
import { physicalNameOf, type TableName } from '../../tables/table-names.ts';
import type { GrantImage, QuotaChange } from '../../relay/ports/money-stores.ts';
import { noticePrefix } from '../dynamodb/alerts/alert-store.ts';
import { readGrantImage } from '../dynamodb/grant-store.ts';
import { readQuota } from '../dynamodb/quotas/quota-items.ts';

/** Processes one record. Throws Poisoned if it can never be processed; any other error causes a retry. */
type TakeOutcome = Error | undefined;

/** Jobs get changes in any order, possibly repeated. */
interface StreamJob {
  /** Reported for a change that can never be processed. */
  poisonReport: { event: string; metric: MetricName };
  log: Log;
  metrics: Metrics;
}

interface TableStreamJob<Change> extends StreamJob {
  /** Safe to repeat. Throws Poisoned for a change that can never be processed. */
  take(change: Change): Promise<void>;
}

interface TableStreamBatchJob<Change> extends StreamJob {
  /** Safe to repeat. Returns an outcome for each change. If it rejects, all are retried. */
  takeAll(changes: readonly Change[]): Promise<readonly TakeOutcome[]>;
}

/** Returns undefined for records to ignore. Throws Poisoned. */
type ReadRecord<Change> = (record: DynamoDBRecord) => Change | undefined;

export type TableStreamHandler = (
  event: DynamoDBStreamEvent,
  context: Pick<Context, 'awsRequestId'>,
) => Promise<DynamoDBBatchResponse>;

export const createTableStreamHandler = <Change>(
  read: ReadRecord<Change>,
  job: TableStreamJob<Change>,
): TableStreamHandler =>
  createTableStreamBatchHandler(read, {
    ...job,
    takeAll: takeEachAlone((change: Change) => job.take(change)),
  });

export function createTableStreamBatchHandler<Change>(
  read: ReadRecord<Change>,
  job: TableStreamBatchJob<Change>,
): TableStreamHandler {
  const changeOrError = (record: DynamoDBRecord): { change?: Change | undefined; error?: Error } => {
    try {
      return { change: read(record) };
    } catch (error) {
      return { error: ensureError(error) };
    }
  };
  return async ({ Records }, { awsRequestId: invocation }) => {
    const readings = Records.map(changeOrError);
    const changes = readings.flatMap(({ change }) => (change === undefined ? [] : [change]));
    const results = await job
      .takeAll(changes)
      .catch((error: unknown) => changes.map(() => ensureError(error)));
    const outcomes = results.values();
    for (const [at, record] of Records.entries()) {
      const { change, error } = readings[at] ?? {};
      const outcome = change === undefined ? error : outcomes.next().value;
      if (outcome instanceof Poisoned) reportPoisoned(job, record, { problem: outcome.message, invocation });
      else if (outcome instanceof StoreBusy || outcome instanceof StoreUnavailable) {
        job.log.fault(sequenceOf(record), outcome, { event: 'records', outcome: 'retried', invocation });
        return { batchItemFailures: [{ itemIdentifier: sequenceOf(record) }] };
      } else if (outcome) throw outcome;
    }
    return { batchItemFailures: [] };
  };
}

const atOnceMax = 10;

/** Takes some at once, and none after a change that needs a retry. */
function takeEachAlone<Change>(
  take: (change: Change) => Promise<void>,
): TableStreamBatchJob<Change>['takeAll'] {
  return async (changes) => {
    const outcomes: TakeOutcome[] = [];
    while (outcomes.length < changes.length) {
      const group = changes.slice(outcomes.length, outcomes.length + atOnceMax);
      outcomes.push(
        ...(await Promise.all(group.map((change) => take(change).then(() => undefined, ensureError)))),
      );
      const failed = outcomes.find((outcome) => outcome && !(outcome instanceof Poisoned));
      if (failed) outcomes.push(...changes.slice(outcomes.length).map(() => failed));
    }
    return outcomes;
  };
}

const ensureError = (thrown: unknown): Error =>
  thrown instanceof Error ? thrown : new Error(String(thrown));

function reportPoisoned(
  { poisonReport: poisoned, metrics, log }: StreamJob,
  record: DynamoDBRecord,
  found: { problem: string; invocation: string },
): void {
  metrics.count(poisoned.metric);
  log.event(poisoned.event, { ...keysOf(record), sequence: sequenceOf(record), ...found });
}

const sequenceOf = (record: DynamoDBRecord): string => record.dynamodb?.SequenceNumber ?? '';

const keysOf = (record: DynamoDBRecord): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(record.dynamodb?.Keys ?? {}).map(([name, { S }]) => [name, S]));

// Streams of the tables that operators edit. Any change compiles the whole configuration. Rejects when this fails, so that
// Lambda retries.

interface ConfigJob {
  stack: string;
  publish(): Promise<unknown>;
  markRows(rows: WrittenRow[]): Promise<void>;
}

export const createConfigStreamHandler =
  (job: ConfigJob) =>
  async ({ Records }: DynamoDBStreamEvent): Promise<void> => {
    const written = markedTables.flatMap((table) => collectWrittenRows(Records, table, job.stack));
    if (hasConfiguration(Records, job.stack)) await job.publish();
    await job.markRows(written);
  };

const isFromTable = ({ eventSourceARN }: DynamoDBRecord, table: TableName, stack: string): boolean =>
  eventSourceARN?.includes(`:table/${physicalNameOf(stack, table)}/`) === true;

const hasConfiguration = (records: DynamoDBRecord[], stack: string): boolean =>
  records.some((record) => !markedTables.some((table) => isFromTable(record, table, stack)));

function collectWrittenRows(
  records: DynamoDBRecord[],
  table: WrittenRow['table'],
  stack: string,
): WrittenRow[] {
  const newest = new Map<string | number, unknown>();
  for (const record of records) {
    if (!isFromTable(record, table, stack)) continue;
    const { Keys, NewImage } = record.dynamodb ?? {};
    const key = readImageRow(Keys)[tableSchemas[table].partitionKey.name];
    if (typeof key !== 'string' && typeof key !== 'number') continue;
    if (NewImage) newest.set(key, readImageRow(NewImage));
    else newest.delete(key);
  }
  return [...newest].map(([key, raw]) => ({ table, key, raw }));
}

const readImageRow = (image: unknown): Record<string, unknown> => valuesOf(decodeImage(image));

/** Throws Poisoned. */
export function readQuotaRecord({ dynamodb }: DynamoDBRecord): QuotaChange {
  const account = dynamodb?.Keys?.['account']?.S;
  if (account === undefined) throw new Poisoned('quotas: a record without its key');
  const { OldImage, NewImage } = dynamodb ?? {};
  return {
    item: account,
    account,
    before: OldImage && readQuota(OldImage as Attributes),
    after: NewImage && readQuota(NewImage as Attributes),
    writtenAt: dynamodb?.ApproximateCreationDateTime,
  };
}

export const readGrantRecord = ({ dynamodb }: DynamoDBRecord): GrantImage | undefined =>
  dynamodb?.NewImage && readGrantImage(decodeImage(dynamodb.NewImage));

export function readNoticeRecord({ dynamodb }: DynamoDBRecord): string | undefined {
  const id = dynamodb?.Keys?.['id']?.S;
  return id?.startsWith(noticePrefix) ? id.slice(noticePrefix.length) : undefined;
}
