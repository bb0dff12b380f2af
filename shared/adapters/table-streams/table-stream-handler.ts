/**
 * The Lambda handler behind one table's stream (DynamoDB Streams): hands each record to a job. A poisoned record is
 * reported and skipped. After any other failure the batch comes again from that record on, which is for the event source
 * mapping to repeat, to halve and at last to give up.
 */
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent, ScheduledEvent } from 'aws-lambda';
import type { ChangeJob } from '../../relay/ports/change-job.ts';
import { Poisoned } from '../../relay/ports/store-errors.ts';

/** What a record says; undefined: nothing of interest. Throws Poisoned. */
export type ReadRecord<Change> = (record: DynamoDBRecord) => Change | undefined;

export type TableStreamHandler = (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse>;

const atOnceMax = 10;

export function tableStreamHandler<Change>(
  read: ReadRecord<Change>,
  job: ChangeJob<Change>,
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
  job: ChangeJob<Change>,
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
