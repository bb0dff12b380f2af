import { ConditionalCheckFailedException, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import {
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  ScanCommand,
  TransactWriteCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { physicalTableName, tableSchemas } from '../../shared/adapters/table-schema.ts';
import type { TableName } from '../../shared/adapters/table-schema.ts';
import { explainStoreError } from './store-error.ts';
import type { Target } from './target.ts';

/** A row as the table has it, before any schema has read it. */
export type RawRow = Record<string, unknown>;

/** All that this program does to tables. Every method throws a Failure that says what to do next. */
export interface Tables {
  /** Undefined when the environment names none; then every method fails. */
  region: string | undefined;
  get(table: TableName, key: string): Promise<RawRow | undefined>;
  scan(table: TableName): Promise<RawRow[]>;
  /** Writes a new row. @returns false when there is one with this key already, which stays as it is. */
  create(table: TableName, row: RawRow): Promise<boolean>;
  /** Writes the whole row, over the one that may be there. */
  replace(table: TableName, row: RawRow): Promise<void>;
  /** Sets attributes of a row. @returns false when the row is gone: an update must not bring it back. */
  update(table: TableName, key: string, attributes: RawRow): Promise<boolean>;
  /**
   * One step, or none: writes the new `row`, and sets attributes of the row at `key` if it still has the
   * values of `unchanged` (undefined: the attribute is absent).
   */
  succeed(table: TableName, row: RawRow, key: string, attributes: RawRow, unchanged: RawRow): Promise<void>;
}

export async function openTables(target: Target): Promise<Tables> {
  const client = new DynamoDBClient({
    requestHandler: { connectionTimeout: 3000, requestTimeout: 15_000, throwOnRequestTimeout: true },
    ...(target.endpoint !== undefined && { endpoint: target.endpoint }),
    // An emulator asks for some credentials and looks at none.
    ...(target.local && {
      region: 'us-east-1',
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
      maxAttempts: 1,
    }),
  });
  const documents = DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
  const explained = async <Result>(work: Promise<Result>): Promise<Result> =>
    work.catch((error: unknown) => {
      throw explainStoreError(error, target);
    });
  const region = await client.config.region().catch(() => undefined);
  return { region, ...tableAccess(documents, target, explained) };
}

type Explained = <Result>(work: Promise<Result>) => Promise<Result>;

const keyNameOf = (table: TableName): string => tableSchemas[table].partitionKey.name;

function tableAccess(
  documents: DynamoDBDocumentClient,
  target: Target,
  explained: Explained,
): Omit<Tables, 'region'> {
  const at = (table: TableName) => ({ TableName: physicalTableName(target.stack, table) });
  const put = (table: TableName, row: RawRow) => ({
    ...at(table),
    Item: row,
    ConditionExpression: 'attribute_not_exists(#key)',
    ExpressionAttributeNames: { '#key': keyNameOf(table) },
  });
  const set = (table: TableName, key: string, attributes: RawRow, unchanged: RawRow = {}) => ({
    ...at(table),
    Key: { [keyNameOf(table)]: key },
    ...setExpression(keyNameOf(table), attributes, unchanged),
  });

  return {
    async get(table, key) {
      const command = new GetCommand({
        ...at(table),
        Key: { [keyNameOf(table)]: key },
        ConsistentRead: true,
      });
      return (await explained(documents.send(command))).Item;
    },
    async scan(table) {
      const rows: RawRow[] = [];
      let from: RawRow | undefined;
      do {
        const command = new ScanCommand({ ...at(table), ConsistentRead: true, ExclusiveStartKey: from });
        const page = await explained(documents.send(command));
        rows.push(...(page.Items ?? []));
        from = page.LastEvaluatedKey;
      } while (from);
      return rows;
    },
    create: async (table, row) => explained(unlessRefused(documents.send(new PutCommand(put(table, row))))),
    async replace(table, row) {
      await explained(documents.send(new PutCommand({ ...at(table), Item: row })));
    },
    update: async (table, key, attributes) =>
      explained(unlessRefused(documents.send(new UpdateCommand(set(table, key, attributes))))),
    async succeed(table, row, key, attributes, unchanged) {
      const steps = [{ Put: put(table, row) }, { Update: set(table, key, attributes, unchanged) }];
      await explained(documents.send(new TransactWriteCommand({ TransactItems: steps })));
    },
  };
}

/** Sets attributes of a row that exists and has not changed: an update of a deleted row would bring it back. */
function setExpression(keyName: string, attributes: RawRow, unchanged: RawRow) {
  const expected = Object.entries(unchanged);
  const conditions = expected.map(([, value], index) =>
    value === undefined ? `attribute_not_exists(#old${index})` : `#old${index} = :old${index}`,
  );
  const set = Object.entries(attributes);
  return {
    UpdateExpression: `SET ${set.map((_, index) => `#new${index} = :new${index}`).join(', ')}`,
    ConditionExpression: ['attribute_exists(#key)', ...conditions].join(' AND '),
    ExpressionAttributeNames: {
      '#key': keyName,
      ...Object.fromEntries(expected.map(([name], index) => [`#old${index}`, name])),
      ...Object.fromEntries(set.map(([name], index) => [`#new${index}`, name])),
    },
    ExpressionAttributeValues: {
      ...Object.fromEntries(expected.map(([, value], index) => [`:old${index}`, value])),
      ...Object.fromEntries(set.map(([, value], index) => [`:new${index}`, value])),
    },
  };
}

async function unlessRefused(write: Promise<unknown>): Promise<boolean> {
  try {
    await write;
    return true;
  } catch (error) {
    if (error instanceof ConditionalCheckFailedException) return false;
    throw error;
  }
}
