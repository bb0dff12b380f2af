/** Writes the marks of rows with one conditional write per row. Must never recreate a deleted row. */
import { UpdateCommand, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { attributeOf } from '../../config/rows/read-row.ts';
import { MarksLost, type RowMarks, type ValidatedRow } from '../../relay/ports/stores/config-store.ts';
import { StoreUnavailable } from '../../relay/ports/stores/store-errors.ts';
import type { Log } from '../../relay/ports/telemetry.ts';
import { tableSchemas } from '../../tables/table-schemas.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import { conditionalCall } from './dynamo-client.ts';

const atOnceMax = 10;
/** Ids chosen by operators are shorter and are logged; hashes, in whose place a key may stand, are not. */
const loggedKeyLengthMax = 40;

export interface RowMarksParts {
  client: DynamoDBDocumentClient;
  stack: string;
  log: Pick<Log, 'event'>;
}

export const dynamoRowMarks = (parts: RowMarksParts): RowMarks => ({
  async write(rows) {
    const changed = rows.filter((row) => marksOf(row).some(({ found, wanted }) => found !== wanted));
    const lost: (StoreUnavailable | undefined)[] = [];
    for (let start = 0; start < changed.length; start += atOnceMax)
      lost.push(
        ...(await Promise.all(changed.slice(start, start + atOnceMax).map((row) => tryMark(parts, row)))),
      );
    const cause = lost.find((error) => error !== undefined);
    if (cause) throw new MarksLost('The store did not answer for all marks of rows.', { cause });
  },
});

/** Returns the error when the store did not answer. Logs a row that cannot be marked. */
async function tryMark(
  { client, stack, log }: RowMarksParts,
  row: ValidatedRow,
): Promise<StoreUnavailable | undefined> {
  try {
    await conditionalCall(() => client.send(markCommand(stack, row)));
  } catch (error) {
    if (error instanceof StoreUnavailable) return error;
    // The row is full, or its key is a number that the SDK cannot send.
    log.event('mark_failed', failureOf(row, error));
  }
  return undefined;
}

const failureOf = ({ table, key }: ValidatedRow, error: unknown) => ({
  table,
  ...(table !== 'keys' && String(key).length <= loggedKeyLengthMax && { key }),
  problem: error instanceof Error ? error.name : 'Error',
});

const marksOf = ({ raw, result }: ValidatedRow) => [
  { name: '_problem', found: attributeOf(raw, '_problem'), wanted: result.problem },
  { name: '_warning', found: attributeOf(raw, '_warning'), wanted: result.warning },
];

/** Without this condition an update would create a missing row. */
const rowExists = 'attribute_exists(#key)';

function markCommand(stack: string, row: ValidatedRow): UpdateCommand {
  const marks = marksOf(row);
  const set = marks.filter(({ wanted }) => wanted !== undefined);
  const removed = marks.filter(({ wanted }) => wanted === undefined);
  const keyName = tableSchemas[row.table].partitionKey.name;
  return new UpdateCommand({
    TableName: physicalTableName(stack, row.table),
    Key: { [keyName]: row.key },
    UpdateExpression: [
      set.length > 0 ? `SET ${set.map(({ name }) => `#${name} = :${name}`).join(', ')}` : '',
      removed.length > 0 ? `REMOVE ${removed.map(({ name }) => `#${name}`).join(', ')}` : '',
    ].join(' '),
    ConditionExpression: rowExists,
    ExpressionAttributeNames: {
      '#key': keyName,
      ...Object.fromEntries(marks.map(({ name }) => [`#${name}`, name])),
    },
    ...(set.length > 0 && {
      ExpressionAttributeValues: Object.fromEntries(set.map(({ name, wanted }) => [`:${name}`, wanted])),
    }),
  });
}
