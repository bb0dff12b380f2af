import { ConditionalCheckFailedException } from '@aws-sdk/client-dynamodb';
import { UpdateCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { attributeOf } from '../../config/rows/read-row.ts';
import type { ValidationResult } from '../../config/validation-result.ts';
import type { Log } from '../../relay/ports/telemetry.ts';
import { StoreUnavailable } from '../../relay/ports/store-errors.ts';
import { storeCall } from './dynamo-client.ts';
import { describeFault, jsonLog } from '../telemetry/json-log.ts';
import { tableSchemas } from '../../tables/table-schemas.ts';
import { physicalTableName, type TableName } from '../../tables/table-names.ts';

/** A row, as it was read, and what it is to be told. */
export interface ValidatedRow {
  table: TableName;
  key: string | number;
  raw: unknown;
  result: ValidationResult;
}

const atOnceMax = 10;
/** Ids that people give are shorter; hashes of keys are longer. */
const loggedKeyLengthMax = 40;

/** What StoreUnavailable says when only marks were lost. */
export const marksLost = 'The store did not answer for all marks of rows.';

/**
 * Writes `_problem` and `_warning` where they are not what the row has already: a mark that is there is not written
 * again, so the stream of its own writes comes to rest. A row that is gone stays gone. One that cannot be marked, as it
 * has no room left or a number that the SDK cannot send, is told to the log and holds up no other. Throws
 * StoreUnavailable, after all rows were tried.
 */
export async function writeMarks(
  client: DynamoDBDocumentClient,
  stack: string,
  rows: ValidatedRow[],
  log: Pick<Log, 'event'> = jsonLog(process.env['RELAY_VERSION'] ?? ''),
): Promise<void> {
  const changed = rows.filter((row) => marksOf(row).some(({ found, wanted }) => found !== wanted));
  let unanswered: StoreUnavailable | undefined;
  const tryMark = async (row: ValidatedRow): Promise<void> => {
    try {
      await writeMark(client, stack, row);
    } catch (error) {
      if (error instanceof StoreUnavailable) unanswered = error;
      else log.event('mark_failed', lossOf(row, error));
    }
  };
  for (let start = 0; start < changed.length; start += atOnceMax) {
    await Promise.all(changed.slice(start, start + atOnceMax).map(tryMark));
  }
  if (unanswered) throw new StoreUnavailable(marksLost, { cause: unanswered });
}

const lossOf = ({ table, key }: ValidatedRow, error: unknown) => ({
  table,
  ...(String(key).length <= loggedKeyLengthMax && { key }),
  problem: describeFault(error).error,
});

const marksOf = ({ raw, result }: ValidatedRow) => [
  { name: '_problem', found: attributeOf(raw, '_problem'), wanted: result.problem },
  { name: '_warning', found: attributeOf(raw, '_warning'), wanted: result.warning },
];

async function writeMark(client: DynamoDBDocumentClient, stack: string, row: ValidatedRow): Promise<void> {
  const marks = marksOf(row);
  const set = marks.filter(({ wanted }) => wanted !== undefined);
  const removed = marks.filter(({ wanted }) => wanted === undefined);
  const keyName = tableSchemas[row.table].partitionKey.name;
  const command = new UpdateCommand({
    TableName: physicalTableName(stack, row.table),
    Key: { [keyName]: row.key },
    UpdateExpression: [
      set.length > 0 ? `SET ${set.map(({ name }) => `#${name} = :${name}`).join(', ')}` : '',
      removed.length > 0 ? `REMOVE ${removed.map(({ name }) => `#${name}`).join(', ')}` : '',
    ].join(' '),
    // Without this, an update of a row that was deleted meanwhile would bring its key back.
    ConditionExpression: 'attribute_exists(#key)',
    ExpressionAttributeNames: {
      '#key': keyName,
      ...Object.fromEntries(marks.map(({ name }) => [`#${name}`, name])),
    },
    ...(set.length > 0 && {
      ExpressionAttributeValues: Object.fromEntries(set.map(({ name, wanted }) => [`:${name}`, wanted])),
    }),
  });
  try {
    await storeCall(() => client.send(command));
  } catch (error) {
    if (!(error instanceof ConditionalCheckFailedException)) throw error;
  }
}
