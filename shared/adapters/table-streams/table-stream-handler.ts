/**
 * The Lambda handler of one table stream (DynamoDB Streams): passes each record to a job. Reports and skips a
 * poisoned record. After any other failure the event source mapping retries the batch from that record on,
 * splits it, and finally drops it.
 */
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent, ScheduledEvent } from 'aws-lambda';
import type { Log, MetricName, Metrics } from '../../relay/ports/telemetry.ts';
import { Poisoned } from '../../relay/ports/stores/store-errors.ts';

/** A job that gets the changes of a table one at a time, in any order and possibly repeated. */
export interface TableStreamJob<Change> {
  /**
   * Safe to repeat. Throws Poisoned for a change that can never be processed. Any other error requires a
   * retry.
   */
  take(change: Change): Promise<void>;
  /** The log event and the metric of a change that can never be processed. */
  poisoned: { event: string; metric: MetricName };
  log: Log;
  metrics: Metrics;
}

/** Reads the change in a record. Undefined: the job ignores the record. Throws Poisoned. */
export type ReadRecord<Change> = (record: DynamoDBRecord) => Change | undefined;

export type TableStreamHandler = (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse>;

const atOnceMax = 10;

export function tableStreamHandler<Change>(
  read: ReadRecord<Change>,
  job: TableStreamJob<Change>,
): TableStreamHandler {
  return async ({ Records }) => {
    for (let start = 0; start < Records.length; start += atOnceMax) {
      const group = Records.slice(start, start + atOnceMax);
      const taken = await Promise.all(group.map((record) => take(read, job, record)));
      const failed = group[taken.indexOf(false)];
      if (failed) return { batchItemFailures: [{ itemIdentifier: sequenceOf(failed) }] };
    }
    return { batchItemFailures: [] };
  };
}

/** The handler of a function that a table stream and a schedule invoke. */
export const streamOrSchedule =
  (onRecords: TableStreamHandler, onSchedule: () => Promise<void>) =>
  (event: DynamoDBStreamEvent | ScheduledEvent): Promise<DynamoDBBatchResponse | void> =>
    'Records' in event ? onRecords(event) : onSchedule();

async function take<Change>(
  read: ReadRecord<Change>,
  job: TableStreamJob<Change>,
  record: DynamoDBRecord,
): Promise<boolean> {
  try {
    const change = read(record);
    if (change !== undefined) await job.take(change);
    return true;
  } catch (error) {
    if (!(error instanceof Poisoned)) {
      job.log.fault(sequenceOf(record), error);
      return false;
    }
    const { event, metric } = job.poisoned;
    job.metrics.count(metric);
    job.log.event(event, { ...keysOf(record), sequence: sequenceOf(record), problem: error.message });
    return true;
  }
}

const sequenceOf = (record: DynamoDBRecord): string => record.dynamodb?.SequenceNumber ?? '';

const keysOf = (record: DynamoDBRecord): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(record.dynamodb?.Keys ?? {}).map(([name, { S }]) => [name, S]));
