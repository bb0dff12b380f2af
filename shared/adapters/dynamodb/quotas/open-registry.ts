/**
 * The registry of items with open reservations: items of `daily` with the id `sweep`, sorted by time. They remove
 * themselves a day later.
 */
import {
  paginateQuery,
  QueryCommand,
  UpdateItemCommand,
  type DynamoDBClient,
  BatchGetItemCommand,
  ScanCommand,
} from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import type { Lookup, OpenRegistry, QuotaScan, ScannedQuota } from '../../../relay/ports/money-stores.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import { storeCall, type Attributes } from '../table-client.ts';
import { StoreBusy } from '../../../relay/ports/store-errors.ts';
import { partOf, readQuota, textAttribute } from './quota-items.ts';

const id = 'sweep';
const keptSeconds = 24 * 60 * 60;
/** Sorts after every time. */
const progressPeriod = 'progress';

export function dynamoOpenRegistry(client: DynamoDBClient, stack: string): OpenRegistry {
  const TableName = physicalTableName(stack, 'daily');
  const update = async (period: string, UpdateExpression: string, values: object): Promise<void> => {
    const ExpressionAttributeValues = marshall(values, { removeUndefinedValues: true });
    const Key = marshall({ id, period });
    const command = new UpdateItemCommand({ TableName, Key, UpdateExpression, ExpressionAttributeValues });
    await storeCall(() => client.send(command));
  };
  return {
    async register(lookups) {
      const bySecond = Map.groupBy(lookups, ({ atSeconds }) => atSeconds);
      // Adds to a set: another batch may have registered under the same name.
      await Promise.all(
        [...bySecond].map(([atSeconds, some]) =>
          update(nameOf(some, atSeconds), 'ADD quotas :items SET expires = :expires', {
            ':items': new Set(some.map(({ item }) => item)),
            ':expires': atSeconds + keptSeconds,
          }),
        ),
      );
    },
    async *due(fromSeconds, toSeconds) {
      const input = {
        TableName,
        KeyConditionExpression: 'id = :id AND period BETWEEN :from AND :to',
        // A name is a second and more, so the next second's text sorts after all names of the last one.
        ExpressionAttributeValues: marshall({
          ':id': id,
          ':from': secondText(fromSeconds),
          ':to': secondText(toSeconds + 1),
        }),
        ConsistentRead: true,
      };
      for await (const { Items = [] } of paginateQuery({ client }, input))
        yield Items.flatMap((item) => item['quotas']?.SS ?? []);
    },
    async progress() {
      const command = new QueryCommand({
        TableName,
        KeyConditionExpression: 'id = :id AND period = :period',
        ExpressionAttributeValues: marshall({ ':id': id, ':period': progressPeriod }),
        ConsistentRead: true,
      });
      const [item] = (await storeCall(() => client.send(command))).Items ?? [];
      if (!item) return undefined;
      const [toSeconds, passBeganSeconds] = [item['swept_to']?.N, item['pass_began']?.N].map(Number);
      if (!Number.isFinite(toSeconds) || !Number.isFinite(passBeganSeconds)) return undefined;
      return {
        toSeconds: toSeconds ?? 0,
        passBeganSeconds: passBeganSeconds ?? 0,
        passAfter: item['pass_after']?.S,
      };
    },
    async keepProgress({ toSeconds, passBeganSeconds, passAfter }) {
      const pass = passAfter === undefined ? ' REMOVE pass_after' : ', pass_after = :after';
      await update(progressPeriod, `SET swept_to = :to, pass_began = :began${pass}`, {
        ':to': toSeconds,
        ':began': passBeganSeconds,
        ':after': passAfter,
      });
    },
  };
}

const nameOf = ([first]: readonly Lookup[], atSeconds: number): string =>
  `${secondText(atSeconds)}#${first?.item ?? ''}`;

const secondText = (seconds: number): string => String(seconds).padStart(12, '0');

// Items of `quotas` with open reservations, for the sweeper: by their keys, or page by page.

const hasOpenEntries = 'size(#open) > :none';
/** DynamoDB's limit. */
const keysMax = 100;

/** Items are read at different times, but a close only needs each item to be consistent. */
export function dynamoQuotaScan(client: DynamoDBClient, stack: string): QuotaScan {
  const TableName = physicalTableName(stack, 'quotas');

  const readSome = async (items: readonly string[]): Promise<ScannedQuota[]> => {
    const Keys = items.map((account) => ({ account: textAttribute(account) }));
    const command = new BatchGetItemCommand({
      RequestItems: { [TableName]: { Keys, ConsistentRead: true } },
    });
    const { Responses, UnprocessedKeys } = await storeCall(() => client.send(command));
    const left = UnprocessedKeys?.[TableName]?.Keys?.flatMap(({ account }) => account?.S ?? []) ?? [];
    const read = (Responses?.[TableName] ?? []).map(scanned);
    if (left.length === items.length) throw new StoreBusy('The store is busy.');
    return left.length === 0 ? read : [...read, ...(await readSome(left))];
  };

  return {
    async *read(items) {
      for (let start = 0; start < items.length; start += keysMax)
        yield* await readSome(items.slice(start, start + keysMax));
    },
    async open(after) {
      const command = new ScanCommand({
        TableName,
        ConsistentRead: true,
        FilterExpression: hasOpenEntries,
        ExpressionAttributeNames: { '#open': 'open' },
        ExpressionAttributeValues: { ':none': { N: '0' } },
        ...(after !== undefined && { ExclusiveStartKey: { account: textAttribute(after) } }),
      });
      const { Items = [], LastEvaluatedKey } = await storeCall(() => client.send(command));
      return { quotas: Items.map(scanned), next: LastEvaluatedKey?.['account']?.S };
    },
  };
}

const scanned = (item: Attributes): ScannedQuota => ({
  item: item['account']?.S ?? '',
  ...partOf(item),
  read: () => readQuota(item),
});
