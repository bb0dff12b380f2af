import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { DynamoDBRecord, DynamoDBStreamEvent, ScheduledEvent } from 'aws-lambda';
import { validateAccountRow, validateKeyRow } from '../../config/compile/validate-row.ts';
import { attributeOf } from '../../config/rows/read-row.ts';
import type { ValidationResult } from '../../config/validation-result.ts';
import { rowOfImage } from './row-image.ts';
import type { ConfigMetrics } from '../telemetry/config-metrics.ts';
import { tableSchemas } from '../../tables/table-schemas.ts';
import { physicalTableName, type TableName } from '../../tables/table-names.ts';
import type { ValidatedRow } from '../dynamodb/dynamo-row-marks.ts';

export interface ConfigEventsParts {
  stack: string;
  metrics: ConfigMetrics;
  /** Compiles and publishes the tables of the configuration. */
  keep(): Promise<unknown>;
  mark(rows: ValidatedRow[]): Promise<void>;
}

/** Tables whose rows are validated one by one; they are no part of the configuration. */
const validators = { keys: validateKeyRow, accounts: validateAccountRow } satisfies Partial<
  Record<TableName, (raw: unknown) => ValidationResult>
>;
const validatedTables = Object.keys(validators) as (keyof typeof validators)[];

/**
 * The handler behind the streams of the tables that operators edit, and behind a schedule. Whatever changed in the
 * configuration, all of it is compiled. Rejects, so that the event comes again, when that failed.
 */
export function configHandler(
  parts: ConfigEventsParts,
): (event: DynamoDBStreamEvent | ScheduledEvent) => Promise<void> {
  return async (event) => {
    if (!('Records' in event)) {
      await parts.keep();
      return;
    }
    const validated = validatedTables.flatMap((table) => validatedRows(event.Records, table, parts.stack));
    if (hasConfiguration(event.Records, parts.stack)) await parts.keep();
    const bad = validated.filter(({ result }) => result.problem !== undefined);
    if (bad.length > 0) parts.metrics.badRows(bad.length);
    await parts.mark(validated);
  };
}

const isOf = ({ eventSourceARN }: DynamoDBRecord, table: TableName, stack: string): boolean =>
  eventSourceARN?.includes(`:table/${physicalTableName(stack, table)}/`) === true;

const hasConfiguration = (records: DynamoDBRecord[], stack: string): boolean =>
  records.some((record) => !validatedTables.some((table) => isOf(record, table, stack)));

/** The newest image of each row, validated; rows that were deleted have none. */
function validatedRows(
  records: DynamoDBRecord[],
  table: keyof typeof validators,
  stack: string,
): ValidatedRow[] {
  const newest = new Map<string | number, unknown>();
  for (const record of records) {
    if (!isOf(record, table, stack)) continue;
    const { Keys, NewImage } = record.dynamodb ?? {};
    const key = attributeOf(rowOf(Keys), tableSchemas[table].partitionKey.name);
    if (typeof key !== 'string' && typeof key !== 'number') continue;
    if (NewImage) newest.set(key, rowOf(NewImage));
    else newest.delete(key);
  }
  return [...newest].map(([key, raw]) => ({ table, key, raw, result: validators[table](raw) }));
}

const rowOf = (image: unknown): Record<string, unknown> =>
  rowOfImage((image ?? {}) as Record<string, AttributeValue>);
