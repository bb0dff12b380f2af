/** Reads and writes the tables that operators edit. Every write except `replace` is conditional and records its author. */
import type { AttributeValue, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { Failure } from '../../operate/plan.ts';
import { ExactNumber, type RawRow, type RowTables, type RowWrite } from '../../operate/operator-ports.ts';
import { tableSchemas } from '../../tables/table-schemas.ts';
import type { TableName } from '../../tables/table-names.ts';
import {
  attributesOf,
  changeIfUnchanged,
  chunksOf,
  callConditionally,
  buildExpressions,
  Table,
  valuesOf,
  type Attributes,
  type StoreDeps,
  type TableClient,
} from './table-client.ts';
import { writeTransaction } from './transactions.ts';
import { type Store, isSigned, type RowAuthor } from './operator-store.ts';
import { attributeOf } from '../../config/rows/read-row.ts';
import {
  MarksLost,
  publishedTables,
  type RowMarks,
  type ValidatedRow,
  type ConfigTables,
} from '../../relay/ports/config-store.ts';
import { StoreUnavailable } from '../../relay/ports/store-errors.ts';
import type { Log } from '../../relay/ports/telemetry.ts';

export function createRowTables({ target, tables }: Store, author: RowAuthor): RowTables {
  const tableOf = (table: TableName) => new Table(tables, target.stack, table);
  const buildStep = async (write: RowWrite): Promise<TransactWriteItem> => {
    const signed = await signWrite(write, author);
    if ('row' in signed) return buildPut(tableOf(write.table), signed);
    return buildChange(tableOf(write.table), signed, await readStored(signed));
  };
  const send = async (write: RowWrite): Promise<void> => {
    const { Put, Update, Delete } = await buildStep(write);
    if (Put) await tables.call('PutItem', Put);
    if (Update) await tables.call('UpdateItem', Update);
    if (Delete) await tables.call('DeleteItem', Delete);
  };
  /** Conditions use the stored attributes, because JavaScript numbers may lack digits. */
  const readStored = async ({ table, key, unchanged }: RowChange): Promise<Attributes> => {
    if (!holdsNumber(unchanged)) return attributesOf(unchanged);
    const item = (await tableOf(table).get(key)) ?? {};
    const read = valuesOf(item);
    const names = Object.keys(unchanged);
    const same = names.filter((name) => name in item && jsonOf(read[name]) === jsonOf(unchanged[name]));
    const others = Object.entries(unchanged).filter(([name]) => !same.includes(name));
    return {
      ...attributesOf(Object.fromEntries(others)),
      ...Object.fromEntries(same.map((name) => [name, item[name] as AttributeValue])),
    };
  };
  return {
    async get(table, key) {
      const item = await tableOf(table).get({ [tableSchemas[table].partitionKey.name]: key });
      return item && valuesOf(item);
    },
    scan: (table) => scanRows(tableOf(table)),
    write: async (write) => (await callConditionally(() => send(write))).done,
    async writeTogether(writes) {
      const reply = await writeTransaction(tables, await Promise.all(writes.map(buildStep)));
      if (reply.done) return;
      if (reply.invalid) throw reply.error;
      throw new Failure('the row changed meanwhile and nothing was written: look at it again, then repeat');
    },
  };
}

const scanRows = async (table: Table): Promise<RawRow[]> =>
  (await Array.fromAsync(table.readPages('Scan'))).flat().map(valuesOf);

type RowChange = Exclude<RowWrite, { row: RawRow }>;

async function signWrite(write: RowWrite, author: RowAuthor): Promise<RowWrite> {
  if (!isSigned(write.table) || write.kind === 'remove') return write;
  const marks = await author();
  if (write.kind === 'update') return { ...write, attributes: { ...write.attributes, ...marks } };
  return { ...write, row: { ...write.row, ...marks } };
}

const jsonOf = (value: unknown): string | undefined =>
  JSON.stringify(value, (_, each: unknown) =>
    each instanceof Set ? ['a set', ...(each as Set<unknown>)] : each,
  );

function holdsNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value === 'number';
  return (value instanceof Set ? [...value] : Object.values(value)).some(holdsNumber);
}

/** The same input serves transactions and single writes. */
function buildPut(at: Table, { kind, table, row }: Extract<RowWrite, { row: RawRow }>) {
  const { TableName, Item } = at.putInput(row);
  for (const [name, value] of Object.entries(row))
    if (value instanceof ExactNumber) Item[name] = { N: value.text };
  const isNew = buildExpressions(
    { ConditionExpression: 'attribute_not_exists(#key)' },
    {},
    { '#key': tableSchemas[table].partitionKey.name },
  );
  return { Put: { TableName, Item, ...(kind === 'create' && isNew) } };
}

/** @param stored what must be unchanged, as it is in the table */
function buildChange(at: Table, write: RowChange, stored: Attributes) {
  const attributes = write.kind === 'update' ? write.attributes : {};
  const key = tableSchemas[write.table].partitionKey.name;
  const unchanged = { key, names: Object.keys(write.unchanged), stored };
  const input = { ...at.keyInput(write.key), ...changeIfUnchanged(unchanged, attributes) };
  return write.kind === 'remove' ? { Delete: input } : { Update: input };
}

// Marks rows, one conditional write each. Must never recreate a deleted row.

const atOnceMax = 10;
/** Longer keys are not logged: hashes may stand for keys. */
const loggedKeyLengthMax = 40;

interface RowMarksDeps extends Omit<StoreDeps, 'clock'> {
  log: Pick<Log, 'event'>;
}

export const createRowMarks = (deps: RowMarksDeps): RowMarks => ({
  async write(rows) {
    const changed = rows.filter((row) => marksOf(row).some(({ found, wanted }) => found !== wanted));
    const lost: (StoreUnavailable | undefined)[] = [];
    for (const some of chunksOf(changed, atOnceMax))
      lost.push(...(await Promise.all(some.map((row) => tryMark(deps, row)))));
    const cause = lost.find((error) => error !== undefined);
    if (cause) throw new MarksLost('The store did not answer for all marks of rows.', { cause });
  },
});

/** Returns the error if the store did not answer. Logs a row that cannot be marked. */
async function tryMark(
  { client, stack, log }: RowMarksDeps,
  row: ValidatedRow,
): Promise<StoreUnavailable | undefined> {
  try {
    const key = tableSchemas[row.table].partitionKey.name;
    const marks = Object.fromEntries(marksOf(row).map(({ name, wanted }) => [name, wanted]));
    const update = changeIfUnchanged({ key, names: [], stored: {} }, marks);
    await new Table(client, stack, row.table).update({ [key]: row.key }, update);
  } catch (error) {
    if (error instanceof StoreUnavailable) return error;
    // The row is full, or its key is an invalid number.
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

export const createConfigTables = (client: TableClient, stack: string): ConfigTables => ({
  async rows() {
    const read = publishedTables.map(
      async (table) => [table, await scanRows(new Table(client, stack, table))] as const,
    );
    return Object.fromEntries(await Promise.all(read)) as Record<(typeof publishedTables)[number], RawRow[]>;
  },
});
