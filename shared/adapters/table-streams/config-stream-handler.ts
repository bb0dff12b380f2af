/**
 * The Lambda handler for the table streams of the tables that operators edit, and for a schedule. Any change
 * compiles the whole configuration. Rejects when this fails, so that Lambda retries the event.
 */
import { unmarshall } from '@aws-sdk/util-dynamodb';
import type { DynamoDBRecord, DynamoDBStreamEvent, ScheduledEvent } from 'aws-lambda';
import { markedTables, type WrittenRow } from '../../relay/ports/stores/config-store.ts';
import { attributesOfImage } from '../dynamodb/attributes.ts';
import { tableSchemas } from '../../tables/table-schemas.ts';
import { physicalTableName, type TableName } from '../../tables/table-names.ts';

export interface ConfigJob {
  stack: string;
  /** Compiles and publishes the tables of the configuration. */
  publish(): Promise<unknown>;
  markRows(rows: WrittenRow[]): Promise<void>;
}

export function configStreamHandler(
  job: ConfigJob,
): (event: DynamoDBStreamEvent | ScheduledEvent) => Promise<void> {
  return async (event) => {
    if (!('Records' in event)) {
      await job.publish();
      return;
    }
    const written = markedTables.flatMap((table) => writtenRows(event.Records, table, job.stack));
    if (hasConfiguration(event.Records, job.stack)) await job.publish();
    await job.markRows(written);
  };
}

const isOf = ({ eventSourceARN }: DynamoDBRecord, table: TableName, stack: string): boolean =>
  eventSourceARN?.includes(`:table/${physicalTableName(stack, table)}/`) === true;

const hasConfiguration = (records: DynamoDBRecord[], stack: string): boolean =>
  records.some((record) => !markedTables.some((table) => isOf(record, table, stack)));

/** The newest image of each row, without deleted rows. */
function writtenRows(records: DynamoDBRecord[], table: WrittenRow['table'], stack: string): WrittenRow[] {
  const newest = new Map<string | number, unknown>();
  for (const record of records) {
    if (!isOf(record, table, stack)) continue;
    const { Keys, NewImage } = record.dynamodb ?? {};
    const key = rowOf(Keys)[tableSchemas[table].partitionKey.name];
    if (typeof key !== 'string' && typeof key !== 'number') continue;
    if (NewImage) newest.set(key, rowOf(NewImage));
    else newest.delete(key);
  }
  return [...newest].map(([key, raw]) => ({ table, key, raw }));
}

/** A record's row in the form that the SDK's document client returns. */
const rowOf = (image: unknown): Record<string, unknown> =>
  unmarshall(attributesOfImage(image), { wrapNumbers: Number });
