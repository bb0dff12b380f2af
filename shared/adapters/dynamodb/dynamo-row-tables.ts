/** The rows of the tables that operators edit, over DynamoDB: every write but `replace` has its condition. */
import { Failure } from '../../operate/operator-failure.ts';
import {
  ExactNumber,
  type Key,
  type RawRow,
  type RowTables,
  type RowUpdate,
} from '../../operate/row-tables.ts';
import {
  DeleteCommand,
  GetCommand,
  NumberValue,
  PutCommand,
  ScanCommand,
  TransactWriteCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { tableSchemas } from '../../tables/table-schemas.ts';
import { physicalTableName, type TableName } from '../../tables/table-names.ts';
import { conditionalCall, transactionCall } from './dynamo-client.ts';
import type { Store } from './operator-client.ts';

const keyNameOf = (table: TableName): string => tableSchemas[table].partitionKey.name;

const keyOf = (table: TableName, key: Key): RawRow =>
  typeof key === 'string' ? { [keyNameOf(table)]: key } : key;

const itemOf = (row: RawRow): RawRow =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value instanceof ExactNumber ? NumberValue.from(value.text) : value,
    ]),
  );

export function dynamoRowTables({ target, documents, explained }: Store): RowTables {
  const at = (table: TableName) => ({ TableName: physicalTableName(target.stack, table) });
  const put = (table: TableName, row: RawRow) => ({
    ...at(table),
    Item: itemOf(row),
    ConditionExpression: 'attribute_not_exists(#key)',
    ExpressionAttributeNames: { '#key': keyNameOf(table) },
  });
  const set = (table: TableName, key: Key, update: RowUpdate) => ({
    ...at(table),
    Key: keyOf(table, key),
    ...setExpression(keyNameOf(table), update),
  });
  const isDone = async (write: () => Promise<unknown>): Promise<boolean> =>
    (await explained(conditionalCall(write))).done;

  return {
    async get(table, key) {
      const command = new GetCommand({
        ...at(table),
        Key: keyOf(table, key),
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
    create: async (table, row) => isDone(() => documents.send(new PutCommand(put(table, row)))),
    async replace(table, row) {
      await explained(documents.send(new PutCommand({ ...at(table), Item: itemOf(row) })));
    },
    update: async (table, key, update) =>
      isDone(() => documents.send(new UpdateCommand(set(table, key, update)))),
    async remove(table, key, unchanged) {
      const condition = conditionOn(keyNameOf(table), unchanged);
      const command = new DeleteCommand({ ...at(table), Key: keyOf(table, key), ...condition });
      return isDone(() => documents.send(command));
    },
    async succeed(table, row, update) {
      const steps = [{ Put: put(table, row) }, { Update: set(table, update.key, update) }];
      const command = new TransactWriteCommand({ TransactItems: steps });
      const reply = await explained(transactionCall(() => documents.send(command)));
      if (reply.done) return;
      if (reply.invalid) await explained(Promise.reject(reply.error));
      throw new Failure('the row changed meanwhile and nothing was written: look at it again, then repeat');
    },
  };
}

/** Sets attributes of a row that exists and has not changed: an update of a deleted row would bring it back. */
function setExpression(keyName: string, { attributes, unchanged = {} }: RowUpdate) {
  const condition = conditionOn(keyName, unchanged);
  const changes = Object.entries(attributes).map(([name, value], index) => ({ name, value, index }));
  const set = changes.filter(({ value }) => value !== undefined);
  const remove = changes.filter(({ value }) => value === undefined);
  const setText =
    set.length > 0 ? `SET ${set.map(({ index }) => `#new${index} = :new${index}`).join(', ')}` : '';
  const removeText =
    remove.length > 0 ? ` REMOVE ${remove.map(({ index }) => `#new${index}`).join(', ')}` : '';
  const values = {
    ...condition.ExpressionAttributeValues,
    ...Object.fromEntries(set.map(({ index, value }) => [`:new${index}`, value])),
  };
  return {
    ...condition,
    UpdateExpression: setText + removeText,
    ExpressionAttributeNames: {
      ...condition.ExpressionAttributeNames,
      ...Object.fromEntries(changes.map(({ index, name }) => [`#new${index}`, name])),
    },
    ...(Object.keys(values).length > 0 && { ExpressionAttributeValues: values }),
  };
}

/** The row is there and has these values still; undefined: the attribute is absent. */
function conditionOn(keyName: string, unchanged: RawRow) {
  const expected = Object.entries(unchanged);
  const conditions = expected.map(([, value], index) =>
    value === undefined ? `attribute_not_exists(#old${index})` : `#old${index} = :old${index}`,
  );
  const values = expected.flatMap(([, value], index) =>
    value === undefined ? [] : [[`:old${index}`, value]],
  );
  return {
    ConditionExpression: ['attribute_exists(#key)', ...conditions].join(' AND '),
    ExpressionAttributeNames: {
      '#key': keyName,
      ...Object.fromEntries(expected.map(([name], index) => [`#old${index}`, name])),
    },
    ...(values.length > 0 && { ExpressionAttributeValues: Object.fromEntries(values) as RawRow }),
  };
}
