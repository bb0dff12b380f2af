/** What alerts read of accounts, keys and balances. Writes nothing. */
import { GetItemCommand, BatchGetItemCommand } from '@aws-sdk/client-dynamodb';
import { GetCommand, paginateScan, type DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { readAlertedAccount, type AlertedAccount } from '../../../config/rows/alerted-account.ts';
import { KeyRow } from '../../../config/rows/key-row.ts';
import { readRow } from '../../../config/rows/read-row.ts';
import type { Clock } from '../../../relay/ports/clock.ts';
import type { AlertAccounts } from '../../../relay/ports/alerts/alert-store.ts';
import { StoreUnavailable } from '../../../relay/ports/stores/store-errors.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import { ExpiringCache } from '../../system/expiring-cache.ts';
import type { Attributes } from '../attributes.ts';
import { storeCall } from '../dynamo-client.ts';

/** Every busy account is read once in this time, most of them without a limit. */
const limitLifetimeMs = 5 * 60_000;
const limitsMax = 10_000;

export interface AlertAccountsParts {
  client: DynamoDBDocumentClient;
  clock: Clock;
  stack: string;
  /** true on the local stack: receivers on loopback are allowed. */
  local: boolean;
}

export function dynamoAlertAccounts({ client, clock, stack, local }: AlertAccountsParts): AlertAccounts {
  const tableOf = (name: 'accounts' | 'keys' | 'quotas') => physicalTableName(stack, name);
  const limits = new ExpiringCache<AlertedAccount | undefined>({
    clock,
    entriesMax: limitsMax,
    lifetimeMs: () => limitLifetimeMs,
  });
  const usable = (raw: unknown): AlertedAccount[] => {
    const reading = readAlertedAccount(raw, { local });
    return 'row' in reading ? [reading.row] : [];
  };
  const row = async (account: string): Promise<AlertedAccount | undefined> => {
    const Key = { account };
    const command = new GetCommand({ TableName: tableOf('accounts'), Key, ConsistentRead: true });
    const { Item } = await storeCall(() => client.send(command));
    return Item && usable(Item)[0];
  };
  async function* pages(name: 'accounts' | 'keys'): AsyncGenerator<unknown[]> {
    for await (const { Items = [] } of paginateScan({ client }, { TableName: tableOf(name) })) yield Items;
  }
  return {
    row,
    alertBelow: async (account) => (await limits.get(account, () => row(account)))?.alertBelow,
    balance: (account) => balanceOf(client, tableOf('quotas'), account),
    async *accounts() {
      for await (const rows of pages('accounts')) yield rows.flatMap(usable);
    },
    async *keys() {
      for await (const rows of pages('keys'))
        yield rows.flatMap((raw) => {
          const reading = readRow(KeyRow, raw);
          return 'row' in reading ? [reading.row] : [];
        });
    },
  };
}

/**
 * How many parts the first item says there are. `parts` are those in use; `made` also counts those that were joined again,
 * whose spend stays with them. Both are absent in an account that was never split.
 */
const partsOf = ({ made, parts }: Attributes): number =>
  Math.min(partsMax, Math.max(1, Number(made?.N ?? 1), Number(parts?.N ?? 1)));
const partsMax = 64;

/** Reads no balance that moves between parts: what was granted and what was spent stay with their part. */
async function balanceOf(
  client: DynamoDBDocumentClient,
  TableName: string,
  account: string,
): Promise<bigint | undefined> {
  const ProjectionExpression = 'granted, spent, made, parts';
  const first = new GetItemCommand({
    TableName,
    Key: { account: { S: account } },
    ConsistentRead: true,
    ProjectionExpression,
  });
  const { Item } = await storeCall(() => client.send(first));
  if (!Item) return undefined;
  let rest: Attributes[] = Array.from({ length: partsOf(Item) - 1 }, (_, index) => ({
    account: { S: `${account}#${index + 1}` },
  }));
  let sum = ownedBy(Item);
  for (let tries = 0; rest.length > 0; tries += 1) {
    // A sum with a part missing would be a wrong alert.
    if (tries === 5) throw new StoreUnavailable('The store did not answer for all parts.');
    const wanted = { Keys: rest, ConsistentRead: true, ProjectionExpression };
    const command = new BatchGetItemCommand({ RequestItems: { [TableName]: wanted } });
    const { Responses, UnprocessedKeys } = await storeCall(() => client.send(command));
    for (const item of Responses?.[TableName] ?? []) sum += ownedBy(item);
    rest = UnprocessedKeys?.[TableName]?.Keys ?? [];
  }
  return sum;
}

const ownedBy = ({ granted, spent }: Attributes): bigint => BigInt(granted?.N ?? 0) - BigInt(spent?.N ?? 0);
