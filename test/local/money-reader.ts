import { createHash } from 'node:crypto';
import { QueryCommand, ScanCommand } from '@aws-sdk/lib-dynamodb';
import type { WatchedStack } from '../hardening/watched-stack.ts';
import type { TableName } from '../../shared/tables/table-names.ts';

export type Row = Record<string, unknown>;
export type TableRow = [TableName, Row];
export const nano = 1_000_000_000;

export const keyOf = (account: string): string => `sk-money-${account}`;
export const keyHash = (account: string): string => createHash('sha256').update(keyOf(account)).digest('hex');

/** A key with the account's name, and the account's balance in yuan. */
export const rowsOfAccount = (account: string, amount: number, key: Row = {}): TableRow[] => [
  ['keys', { hash: keyHash(account), account, ...key }],
  ['grants', { account, grant_id: 'first', amount }],
];

/** Polls until the condition holds. The test's own time-out bounds it. */
export async function until(holds: () => Promise<boolean>, pauseMs = 50): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, pauseMs));
}

/** The sums over an account's shards as stored, in nano-yuan. */
export interface StoredAccount {
  parts: number;
  available: number;
  spent: number;
  granted: number;
  moved: number;
  settled: number;
  open: number;
}

/** Entries of calls. An entry with the flag t blocks a late write for 30 s, and is not a call. */
const callsIn = (open: unknown): number =>
  Object.values((open ?? {}) as Record<string, unknown[]>).filter((entry) => !String(entry[7]).includes('t'))
    .length;

/** Reads what the stack stored about money. Uses the tables, but none of the product's code that reads them. */
export class MoneyReader {
  readonly #stack: WatchedStack;

  constructor(stack: WatchedStack) {
    this.#stack = stack;
  }

  /** All accounts with a balance, each with the sums over its shards. */
  async accounts(): Promise<Map<string, StoredAccount>> {
    const accounts = new Map<string, StoredAccount>();
    for (const item of await this.all('quotas')) {
      const name = String(item['account']).split('#')[0] ?? '';
      const sum = accounts.get(name) ?? {
        parts: 0,
        available: 0,
        spent: 0,
        granted: 0,
        moved: 0,
        settled: 0,
        open: 0,
      };
      const figure = (attribute: string): number => Number(item[attribute] ?? 0);
      accounts.set(name, {
        parts: sum.parts + 1,
        available: sum.available + figure('available'),
        spent: sum.spent + figure('spent'),
        granted: sum.granted + figure('granted'),
        moved: sum.moved + figure('moved'),
        settled: sum.settled + figure('settled'),
        open: sum.open + callsIn(item['open']),
      });
    }
    return accounts;
  }

  async account(name: string): Promise<StoredAccount> {
    const account = (await this.accounts()).get(name);
    if (!account) throw new Error(`${name} has no item`);
    return account;
  }

  /** The account once none of its calls is open. */
  async settled(name: string): Promise<StoredAccount> {
    await until(async () => (await this.account(name)).open === 0);
    return this.account(name);
  }

  /** The rows of an account's calls, once there are this many. */
  async ledger(account: string, count: number): Promise<Row[]> {
    let rows: Row[] = [];
    await until(async () => {
      rows = await this.#query('ledger', 'account = :account AND id < :grants', {
        ':account': account,
        ':grants': 'grant#',
      });
      return rows.length >= count;
    });
    return rows;
  }

  /** The sum of this column over an account's days. */
  async daily(account: string, column: string): Promise<number> {
    const rows = await this.#query('daily', 'id = :id AND begins_with(period, :day)', {
      ':id': `account#${account}`,
      ':day': 'day#',
    });
    return rows.reduce((sum, row) => sum + Number(row[column] ?? 0), 0);
  }

  async all(table: TableName): Promise<Row[]> {
    return this.#pages((ExclusiveStartKey) =>
      this.#stack.store.documents.send(
        new ScanCommand({
          TableName: `relay-${table}`,
          ConsistentRead: true,
          ...(ExclusiveStartKey && { ExclusiveStartKey }),
        }),
      ),
    );
  }

  #query(table: TableName, KeyConditionExpression: string, ExpressionAttributeValues: Row): Promise<Row[]> {
    return this.#pages((ExclusiveStartKey) =>
      this.#stack.store.documents.send(
        new QueryCommand({
          TableName: `relay-${table}`,
          KeyConditionExpression,
          ExpressionAttributeValues,
          ...(ExclusiveStartKey && { ExclusiveStartKey }),
        }),
      ),
    );
  }

  async #pages(
    read: (
      from: Row | undefined,
    ) => Promise<{ Items?: Row[] | undefined; LastEvaluatedKey?: Row | undefined }>,
  ): Promise<Row[]> {
    const rows: Row[] = [];
    let from: Row | undefined;
    do {
      const { Items = [], LastEvaluatedKey } = await read(from);
      rows.push(...Items);
      from = LastEvaluatedKey;
    } while (from);
    return rows;
  }
}
