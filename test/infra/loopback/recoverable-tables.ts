/**
 * Adds point-in-time recovery to an emulator without it: copies the rows of all tables at moments that a test names, and
 * restores the last copy before the requested second. What a restore omits, and how it fails, follows the documentation:
 * https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_RestoreTableToPointInTime.html
 */
import {
  BatchWriteItemCommand,
  CreateTableCommand,
  DescribeTableCommand,
  ListTablesCommand,
  paginateScan,
  type AttributeValue,
  type DynamoDBClient,
  type TableDescription,
} from '@aws-sdk/client-dynamodb';
import type { Refusal } from '../../support/fault-proxy.ts';

type Items = Record<string, AttributeValue>[];
interface Asked {
  TableName?: string;
  SourceTableName?: string;
  TargetTableName?: string;
  RestoreDateTime?: number;
}

export class RecoverableTables {
  readonly #client: DynamoDBClient;
  /** By epoch seconds, oldest first. */
  readonly #moments = new Map<number, Map<string, Items>>();
  /** Restores in progress, each with the function that completes it when it is described. */
  readonly #creating = new Map<string, () => Promise<void>>();
  /** Tables without recovery. */
  readonly off = new Set<string>();

  constructor(client: DynamoDBClient) {
    this.#client = client;
  }

  async remember(at: string): Promise<void> {
    const moment = new Map<string, Items>();
    const { TableNames = [] } = await this.#client.send(new ListTablesCommand());
    for (const name of TableNames) moment.set(name, await this.rows(name));
    this.#moments.set(Date.parse(at) / 1000, moment);
  }

  /** Removes a row from the copy of a moment, as if it had never existed. */
  async forget(at: string, table: string, id: string): Promise<void> {
    const moment = this.#moments.get(Date.parse(at) / 1000);
    moment?.set(table, moment.get(table)?.filter((row) => row['id']?.S !== id) ?? []);
  }

  async rows(table: string): Promise<Items> {
    const rows: Items = [];
    for await (const { Items = [] } of paginateScan({ client: this.#client }, { TableName: table }))
      rows.push(...Items);
    return rows;
  }

  /** Returns undefined if the emulator should answer. */
  async answer(target: string, body: Buffer): Promise<Refusal | undefined> {
    const operation = target.split('.')[1] ?? '';
    if (!/^(DescribeContinuousBackups|RestoreTableToPointInTime|DescribeTable)$/.test(operation))
      return undefined;
    const asked = JSON.parse(body.toString()) as Asked;
    if (operation === 'DescribeContinuousBackups') return this.#window(asked.TableName ?? '');
    if (operation === 'RestoreTableToPointInTime') return this.#restore(asked);
    if (!this.#creating.has(asked.TableName ?? '')) return undefined;
    const copies = [...this.#creating.values()];
    this.#creating.clear();
    for (const create of copies) await create();
    return reply({ Table: { TableName: asked.TableName, TableStatus: 'CREATING' } });
  }

  #window(table: string): Refusal {
    const times = [...this.#moments.keys()];
    const description = this.off.has(table)
      ? { PointInTimeRecoveryStatus: 'DISABLED' }
      : {
          PointInTimeRecoveryStatus: 'ENABLED',
          EarliestRestorableDateTime: times[0],
          LatestRestorableDateTime: times.at(-1),
        };
    return reply({
      ContinuousBackupsDescription: {
        ContinuousBackupsStatus: 'ENABLED',
        PointInTimeRecoveryDescription: description,
      },
    });
  }

  async #restore({ SourceTableName: source = '', TargetTableName: copy = '', RestoreDateTime = 0 }: Asked) {
    const at = [...this.#moments.keys()].findLast((time) => time <= RestoreDateTime);
    const { TableNames = [] } = await this.#client.send(new ListTablesCommand());
    if (TableNames.includes(copy) || this.#creating.has(copy))
      return refusal('TableAlreadyExistsException', `Table already exists: ${copy}`);
    if (!TableNames.includes(source)) return refusal('TableNotFoundException', `Table not found: ${source}`);
    if (at === undefined) return refusal('InvalidRestoreTimeException', 'The time is not restorable.');
    const rows = this.#moments.get(at)?.get(source) ?? [];
    this.#creating.set(copy, () => this.#create(source, copy, rows));
    return reply({ TableDescription: { TableName: copy, TableStatus: 'CREATING' } });
  }

  /** Restores keys, indexes and rows, but not the stream, the expiry or the protection. */
  async #create(source: string, copy: string, rows: Items): Promise<void> {
    const { Table = {} } = await this.#client.send(new DescribeTableCommand({ TableName: source }));
    await this.#client.send(
      new CreateTableCommand({
        TableName: copy,
        KeySchema: Table.KeySchema,
        AttributeDefinitions: Table.AttributeDefinitions,
        BillingMode: 'PAY_PER_REQUEST',
        ...indexesOf(Table),
      }),
    );
    for (let from = 0; from < rows.length; from += 25) {
      const puts = rows.slice(from, from + 25).map((Item) => ({ PutRequest: { Item } }));
      await this.#client.send(new BatchWriteItemCommand({ RequestItems: { [copy]: puts } }));
    }
  }
}

const indexesOf = ({ GlobalSecondaryIndexes: indexes }: TableDescription) =>
  indexes && {
    GlobalSecondaryIndexes: indexes.map(({ IndexName, KeySchema, Projection }) => ({
      IndexName,
      KeySchema,
      Projection,
    })),
  };

const headers = { 'content-type': 'application/x-amz-json-1.0' };
const reply = (body: object): Refusal => ({ status: 200, headers, body: JSON.stringify(body) });
const refusal = (name: string, message: string): Refusal => ({
  status: 400,
  headers,
  body: JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${name}`, message }),
});
