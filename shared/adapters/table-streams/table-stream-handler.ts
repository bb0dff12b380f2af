import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent, ScheduledEvent } from 'aws-lambda';
import type { MetricName, Metrics, Log } from '../../relay/ports/telemetry.ts';
import { Poisoned } from '../../relay/ports/store-errors.ts';

export interface StreamHandlerParts<Change> {
  /** What a record says; undefined: nothing of interest. Throws Poisoned. */
  read(record: DynamoDBRecord): Change | undefined;
  /** Takes one change in, safe to repeat. Throws Poisoned, or what makes the record come again. */
  keep(change: Change): Promise<void>;
  /** The log event and the metric of a record that will never be understood. */
  poisoned: { event: string; metric: MetricName };
  log: Log;
  metrics: Metrics;
}

export type StreamHandler = (event: DynamoDBStreamEvent) => Promise<DynamoDBBatchResponse>;

const atOnceMax = 10;

/**
 * The handler of a table's stream. A poisoned record is reported and left behind. With any other failure the batch
 * comes again from that record on, which is for the event source to repeat, to halve and at last to give up.
 */
export function streamHandler<Change>(parts: StreamHandlerParts<Change>): StreamHandler {
  return async ({ Records }) => {
    for (let start = 0; start < Records.length; start += atOnceMax) {
      const group = Records.slice(start, start + atOnceMax);
      const taken = await Promise.all(group.map((record) => take(parts, record)));
      const failed = group[taken.indexOf(false)];
      if (failed) return { batchItemFailures: [{ itemIdentifier: sequenceOf(failed) }] };
    }
    return { batchItemFailures: [] };
  };
}

/** The handler of a function that a stream and a schedule invoke. */
export const streamOrSchedule =
  (onRecords: StreamHandler, onSchedule: () => Promise<void>) =>
  (event: DynamoDBStreamEvent | ScheduledEvent): Promise<DynamoDBBatchResponse | void> =>
    'Records' in event ? onRecords(event) : onSchedule();

async function take<Change>(parts: StreamHandlerParts<Change>, record: DynamoDBRecord): Promise<boolean> {
  try {
    const change = parts.read(record);
    if (change !== undefined) await parts.keep(change);
    return true;
  } catch (error) {
    if (!(error instanceof Poisoned)) {
      parts.log.fault(sequenceOf(record), error);
      return false;
    }
    const { event, metric } = parts.poisoned;
    parts.metrics.count(metric);
    parts.log.event(event, { ...keysOf(record), sequence: sequenceOf(record), problem: error.message });
    return true;
  }
}

const sequenceOf = (record: DynamoDBRecord): string => record.dynamodb?.SequenceNumber ?? '';

const keysOf = (record: DynamoDBRecord): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(record.dynamodb?.Keys ?? {}).map(([name, { S }]) => [name, S]));
