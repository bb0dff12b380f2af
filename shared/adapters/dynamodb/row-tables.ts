/**
 * Rows of the tables that operators edit, in DynamoDB. Every write except `replace` is conditional, and says who made it
 * and when.
 */
import {
  DeleteCommand,
  GetCommand,
  NumberValue,
  PutCommand,
  TransactWriteCommand,
  UpdateCommand,
  paginateScan,
  type DynamoDBDocumentClient,
} from '@aws-sdk/lib-dynamodb';
import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { Failure } from '../../operate/plan.ts';
import { ExactNumber, type RawRow, type RowTables, type RowWrite } from '../../operate/operator-ports.ts';
import { tableSchemas } from '../../tables/table-schemas.ts';
import { physicalTableName, type TableName } from '../../tables/table-names.ts';
import { conditionalCall, storeCall } from './table-client.ts';
import { transactionCall } from './transactions.ts';
import { type Store, isSigned, type RowAuthor } from './operator-store.ts';
import { attributeOf } from '../../config/rows/read-row.ts';
import {
  MarksLost,
  type RowMarks,
  type ValidatedRow,
  type ConfigTables,
} from '../../relay/ports/config-store.ts';
import { StoreUnavailable } from '../../relay/ports/store-errors.ts';
import type { Log } from '../../relay/ports/telemetry.ts';

export function dynamoRowTables(store: Store, author: RowAuthor): RowTables {
  const { target, client, documents, explained } = store;
  const at = (table: TableName) => ({ TableName: physicalTableName(target.stack, table) });
  const send = async (write: RowWrite): Promise<unknown> => {
    const step = stepOf(at(write.table), await conditioned(await signed(write, author)));
    if (step.Put) return documents.send(new PutCommand(step.Put));
    if (step.Update) return documents.send(new UpdateCommand(step.Update));
    return documents.send(new DeleteCommand(step.Delete));
  };
  /** A JavaScript number has not all the digits that a stored one may have, so a condition is made of the stored one. */
  const conditioned = async (write: RowWrite): Promise<RowWrite> => {
    if ('row' in write || !holdsNumber(write.unchanged)) return write;
    const command = new GetItemCommand({
      ...at(write.table),
      Key: marshall(write.key),
      ConsistentRead: true,
    });
    const { Item = {} } = await client.send(command);
    const read = unmarshall(Item, { wrapNumbers: Number });
    const stored = unmarshall(Item, { wrapNumbers: (text) => NumberValue.from(text) });
    const unchanged = Object.entries(write.unchanged).map(([name, value]) => [
      name,
      jsonOf(read[name]) === jsonOf(value) ? stored[name] : value,
    ]);
    return { ...write, unchanged: Object.fromEntries(unchanged) as RawRow };
  };
  return {
    async get(table, key) {
      const Key = { [tableSchemas[table].partitionKey.name]: key };
      const command = new GetCommand({ ...at(table), Key, ConsistentRead: true });
      return (await explained(documents.send(command))).Item;
    },
    async scan(table) {
      const pages = paginateScan({ client: documents }, { ...at(table), ConsistentRead: true });
      return (await explained(Array.fromAsync(pages))).flatMap(({ Items = [] }) => Items);
    },
    write: async (write) => (await explained(conditionalCall(() => send(write)))).done,
    async writeTogether(writes) {
      const all = await explained(
        Promise.all(writes.map(async (write) => conditioned(await signed(write, author)))),
      );
      const TransactItems = all.map((write) => stepOf(at(write.table), write));
      const command = new TransactWriteCommand({ TransactItems });
      const reply = await explained(transactionCall(() => documents.send(command)));
      if (reply.done) return;
      if (reply.invalid) await explained(Promise.reject(reply.error));
      throw new Failure('the row changed meanwhile and nothing was written: look at it again, then repeat');
    },
  };
}

/** Adds who makes the write, and when. A row that is removed keeps nothing. */
async function signed(write: RowWrite, author: RowAuthor): Promise<RowWrite> {
  if (!isSigned(write.table) || write.kind === 'remove') return write;
  const marks = await author();
  if (write.kind === 'update') return { ...write, attributes: { ...write.attributes, ...marks } };
  return { ...write, row: { ...write.row, ...marks } };
}

/** What is in sets, too. */
const jsonOf = (value: unknown): string | undefined =>
  JSON.stringify(value, (_, each: unknown) =>
    each instanceof Set ? ['a set', ...(each as Set<unknown>)] : each,
  );

function holdsNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value === 'number';
  return (value instanceof Set ? [...value] : Object.values(value)).some(holdsNumber);
}

/** A write as an item of a transaction. A single write has the same input. */
function stepOf(at: { TableName: string }, write: RowWrite) {
  const names = { '#key': tableSchemas[write.table].partitionKey.name };
  if ('row' in write) {
    const isNew = { ConditionExpression: 'attribute_not_exists(#key)', ExpressionAttributeNames: names };
    return { Put: { ...at, Item: itemOf(write.row), ...(write.kind === 'create' && isNew) } };
  }
  const old = placeholders('old', write.unchanged);
  const set = placeholders('new', write.kind === 'update' ? write.attributes : {});
  const conditions = old.map(({ at, value }) =>
    value === undefined ? `attribute_not_exists(#${at})` : `#${at} = :${at}`,
  );
  const values = [...old, ...set].filter(({ value }) => value !== undefined);
  const input = {
    ...at,
    Key: write.key,
    // Without this condition an update would recreate a deleted row.
    ConditionExpression: ['attribute_exists(#key)', ...conditions].join(' AND '),
    ExpressionAttributeNames: {
      ...names,
      ...Object.fromEntries([...old, ...set].map(({ at, name }) => [`#${at}`, name])),
    },
    ...(values.length > 0 && {
      ExpressionAttributeValues: Object.fromEntries(values.map(({ at, value }) => [`:${at}`, value])),
    }),
  };
  if (write.kind === 'remove') return { Delete: input };
  const assigned = set.filter(({ value }) => value !== undefined).map(({ at }) => `#${at} = :${at}`);
  const removed = set.filter(({ value }) => value === undefined).map(({ at }) => `#${at}`);
  const UpdateExpression = [
    assigned.length > 0 ? `SET ${assigned.join(', ')}` : '',
    removed.length > 0 ? `REMOVE ${removed.join(', ')}` : '',
  ].join(' ');
  return { Update: { ...input, UpdateExpression } };
}

/**
 * Attributes with the suffix of their placeholders in an expression: `old0` for `#old0` (name) and `:old0`
 * (value).
 */
const placeholders = (prefix: string, attributes: RawRow) =>
  Object.entries(attributes).map(([name, value], index) => ({ name, value, at: `${prefix}${index}` }));

const itemOf = (row: RawRow): RawRow =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value instanceof ExactNumber ? NumberValue.from(value.text) : value,
    ]),
  );

// Writes the marks of rows with one conditional write per row. Must never recreate a deleted row.

const atOnceMax = 10;
/** Ids chosen by operators are shorter and are logged; hashes, in whose place a key may stand, are not. */
const loggedKeyLengthMax = 40;

interface RowMarksParts {
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

// Reads the four tables that make up the configuration.

export function dynamoConfigTables(client: DynamoDBDocumentClient, stack: string): ConfigTables {
  const scan = async (table: TableName): Promise<unknown[]> => {
    const rows: unknown[] = [];
    const input = { TableName: physicalTableName(stack, table), ConsistentRead: true };
    for await (const page of paginateScan({ client }, input)) rows.push(...(page.Items ?? []));
    return rows;
  };
  return {
    rows: () =>
      storeCall(async () => {
        const [channels, charges, plans, settings] = await Promise.all([
          scan('channels'),
          scan('charges'),
          scan('plans'),
          scan('settings'),
        ]);
        return { channels, charges, plans, settings };
      }),
  };
}
