/** Puts rows of `ledger` and counts them in `daily`. Rows may arrive in any order and repeatedly. */
import type { TransactWriteItem, AttributeValue } from '@aws-sdk/client-dynamodb';
import { mapInputParts } from '../../wire/chat-response.ts';
import { keepNewest } from '../../wire/keep-newest.ts';
import { sumDaily, groupIntoTransactions, type DailySum } from '../../billing/daily-figures.ts';
import { bucketCount, isOfAllAccounts, buildSpreadKey, spreadDayOf } from '../../billing/daily-keys.ts';
import {
  ledgerBuckets,
  formatLedgerPartition,
  type CloseRow,
  type GrantLedgerRow,
  type LedgerRow,
} from '../../billing/ledger-row.ts';
import type { Random } from '../../relay/ports/host.ts';
import type { LedgerStore } from '../../relay/ports/money-stores.ts';
import { Poisoned, StoreBusy } from '../../relay/ports/store-errors.ts';
import { physicalNameOf } from '../../tables/table-names.ts';
import {
  attributesOf,
  callConditionally,
  buildExpressions,
  isInvalid,
  Table,
  type TableClient,
  type Attributes,
} from './table-client.ts';
import { writeTransaction } from './transactions.ts';
import { countInBudgets } from './key-budgets.ts';
import { decodeTags } from './quotas/quota-items.ts';
import { addToDaily } from './daily-sums.ts';
import { formatYuan, parseYuan, type NanoYuan } from '../../billing/money.ts';
import { systemRandom } from '../system/node-ports.ts';

/**
 * States of an id:
 *
 *     absent --any row--> taken
 *     absent --cancelled--> a tombstone's row --settled, released or expired--> taken
 *
 * A settled call's id can also belong to a tombstone that is cancelled later. The tombstone's row must not
 * block the call's own row, whichever arrives first.
 */
const isAbsent = 'attribute_not_exists(id)';
const isTombstone = '#kind = :cancelled';

/** DynamoDB's limit. */
const writesMax = 100;

const spreadMax = 7 * bucketCount;

/** The batch waits up to a second for these. */
const minutesTries = { attempts: 2, tryMsMax: 450 };

export function createLedgerStore(
  client: TableClient,
  stack: string,
  random: Random = systemRandom,
): LedgerStore {
  const TableName = physicalNameOf(stack, 'ledger');
  const drawBucket = (): number => Math.floor(random.next() * bucketCount);
  /** Concurrent transactions of this environment use different buckets for the sums of all accounts. */
  const buckets = [0];
  /** Buckets that this environment has registered, by day. */
  const spread = new Map<string, true>();
  /** Registers a bucket before its first sum, because operators only read registered ones. */
  const registerSpread = async (bucket: number, sums: readonly DailySum[]): Promise<void> => {
    const days = new Set(
      sums.flatMap(({ key }) => (isOfAllAccounts(key.id) ? (spreadDayOf(key) ?? []) : [])),
    );
    const unsaid = [...days].filter((day) => bucket > 0 && !spread.has(`${day}#${bucket}`));
    for (const day of unsaid) {
      await new Table(client, stack, 'daily').update(buildSpreadKey(day, bucket), {});
      keepNewest(spread, spreadMax, `${day}#${bucket}`, true);
    }
  };
  const buildPut = (row: CloseRow) => ({ TableName, Item: encodeLedgerRow(row), ...buildPutCondition(row) });
  return {
    groups: (rows) => groupIntoTransactions(dropDuplicates(rows), writesMax),
    async putCounted(rows) {
      let bucket = buckets.pop() ?? drawBucket();
      let remaining = [...rows];
      try {
        // Each turn drops rows that exist already, so that only new rows are counted.
        while (remaining.length > 0) {
          const puts = remaining.map((row): TransactWriteItem => ({ Put: buildPut(row) }));
          const sums = sumDaily(remaining, bucket);
          await registerSpread(bucket, sums);
          const counts = sums.map((sum): TransactWriteItem => ({ Update: addToDaily(stack, sum) }));
          const reply = await writeTransaction(client, [
            ...puts,
            ...counts,
            ...countInBudgets(stack, remaining),
          ]);
          if (reply.done) return remaining;
          if (reply.invalid) throw new Poisoned('ledger: the row is refused', { cause: reply.error });
          // Another bucket is safe: if this try was applied after all, its rows refuse the next one.
          if (reply.busy.some((at) => isOfAllAccounts(sums[at - puts.length]?.key.id ?? '')))
            bucket = drawBucket();
          const taken = new Set(reply.conditions);
          if (taken.size === 0)
            throw new StoreBusy('The transaction did not go through.', { cause: reply.error });
          remaining = remaining.filter((_row, at) => !taken.has(at));
        }
        return remaining;
      } finally {
        buckets.push(bucket);
      }
    },
    async putUncounted(row) {
      try {
        await callConditionally(() => client.call('PutItem', buildPut(row)));
      } catch (error) {
        if (isInvalid(error)) throw new Poisoned('ledger: the row is refused', { cause: error });
        throw error;
      }
    },
    async addToMinutes(sums) {
      await Promise.all(sums.map((sum) => client.call('UpdateItem', addToDaily(stack, sum), minutesTries)));
    },
  };
}

/** A transaction must not write an item twice. */
function dropDuplicates(rows: readonly CloseRow[]): CloseRow[] {
  const byId = new Map<string, CloseRow>();
  for (const row of rows) {
    const name = `${row.account}\u0000${row.id}`;
    const other = byId.get(name);
    if (other === undefined || other.kind === 'cancelled') byId.set(name, row);
  }
  return [...byId.values()];
}

const buildPutCondition = ({ kind }: CloseRow) =>
  kind === 'cancelled'
    ? { ConditionExpression: isAbsent }
    : buildExpressions(
        { ConditionExpression: `${isAbsent} OR ${isTombstone}` },
        { ':cancelled': 'cancelled' },
      );

// Rows of an account: in its own partition, and for calls that drew a counter, in `ledgerBuckets` more.

const buckets = Array.from({ length: ledgerBuckets }, (_, bucket) => bucket);

export const listPartitions = (account: string): string[] => [
  account,
  ...buckets.map((bucket) => formatLedgerPartition({ account, bucket })),
];

/** Only accounts that ever had counters use more than one. */
export async function findLedgerPartitions(
  client: TableClient,
  stack: string,
  account: string,
): Promise<string[]> {
  const quotas = new Table(client, stack, 'quotas');
  const item = await quotas.get({ account }, { ProjectionExpression: 'counters' });
  return item?.['counters'] ? listPartitions(account) : [account];
}

const idOf = (item: Attributes | undefined): string => item?.['id']?.S ?? '';

/** The newest rows of these partitions below an id, newest first. `isAll`: there are no more. */
export async function readNewestRows(
  ledger: Table,
  partitions: readonly string[],
  { before, Limit }: { before: string; Limit: number },
): Promise<{ items: Attributes[]; isAll: boolean }> {
  const range = 'account = :account AND id < :before';
  const pages = await Promise.all(
    partitions.map((account) =>
      ledger.queryNewest(range, { ':account': account, ':before': before }, { Limit }),
    ),
  );
  // Rows below the last one of an unfinished partition are unknown.
  const lastIds = pages.map(({ items, isAll }) => (isAll ? '' : idOf(items.at(-1))));
  const least = lastIds.reduce((a, b) => (a > b ? a : b), '');
  const items = pages.flatMap((page) => page.items).filter((item) => idOf(item) >= least);
  const newest = items.toSorted((a, b) => (idOf(a) < idOf(b) ? 1 : -1)).slice(0, Limit);
  return { items: newest, isAll: least === '' && items.length <= Limit };
}

const encodeAmount = (amount: NanoYuan): AttributeValue => ({ N: formatYuan(amount) });

const laterAmounts = ['cost', 'bought', 'search_price', 'search_bought'] as const;

export function encodeLedgerRow(row: LedgerRow): Attributes {
  const attributes = attributesOf({ ...row, account: formatLedgerPartition(row) });
  if (row.kind === 'grant') return { ...attributes, amount: encodeAmount(row.amount) };
  return {
    ...attributes,
    charge: encodeAmount(row.charge),
    reserved: encodeAmount(row.reserved),
    ...Object.fromEntries(
      laterAmounts.flatMap((name) => {
        const amount = row[name];
        return amount === undefined ? [] : [[name, encodeAmount(amount)] as const];
      }),
    ),
  };
}

/** Accounts cannot have such names. */
export const readPartitionAccount = (partition: string): string => partition.replace(/#\d+$/, '');

const closeKinds = ['settled', 'released', 'expired', 'cancelled'] as const;

export const decodeLedgerRow = (attributes: Attributes): LedgerRow =>
  attributes['kind']?.S === 'grant' ? decodeGrantRow(attributes) : decodeCloseRow(attributes);

export const decodeGrantRow = (attributes: Attributes): GrantLedgerRow => ({
  ...decodeKey(attributes),
  kind: 'grant',
  amount: decodeAmount(attributes['amount'], 'amount'),
  reason: attributes['reason']?.S ?? '',
});

export function decodeCloseRow(attributes: Attributes): CloseRow {
  const kind = closeKinds.find((one) => one === attributes['kind']?.S);
  if (kind === undefined) throw createFormatError('kind');
  const readEach = <Name extends string, Value>(
    names: readonly Name[],
    read: (value: AttributeValue | undefined, name: Name) => Value,
  ) => Object.fromEntries(names.map((name) => [name, read(attributes[name], name)])) as Record<Name, Value>;
  return {
    ...decodeKey(attributes),
    kind,
    ...readEach(
      ['endpoint', 'alias', 'end', 'plan_slot', 'budget', 'channel', 'upstream_model', 'flag', 'end_user'],
      (value) => value?.S,
    ),
    service_tier: attributes['service_tier']?.S,
    tried: attributes['tried']?.S,
    tags: attributes['tags'] && decodeTags(attributes['tags']),
    ...readEach(['estimated', 'official', 'metered'], (value) => value?.BOOL === true || undefined),
    ...readEach(['prompt_tokens', 'completion_tokens', 'first_content_ms', 'bucket'], decodeCount),
    model: decodeText(attributes['model'], 'model'),
    key: decodeText(attributes['key'], 'key'),
    price: decodeText(attributes['price'], 'price'),
    tariff: attributes['tariff']?.S,
    charge: decodeAmount(attributes['charge'], 'charge'),
    reserved: decodeAmount(attributes['reserved'], 'reserved'),
    ...readEach(laterAmounts, (value, name) => value && decodeAmount(value, name)),
    ...mapInputParts('count', (part) => decodeCount(attributes[part.count])),
  };
}

function decodeKey({ account, id, at, bucket }: Attributes): Pick<LedgerRow, 'account' | 'id' | 'at'> {
  const written = decodeText(at, 'at');
  if (Number.isNaN(Date.parse(written))) throw createFormatError('at');
  const partition = decodeText(account, 'account');
  return {
    account: bucket ? readPartitionAccount(partition) : partition,
    id: decodeText(id, 'id'),
    at: written,
  };
}

function decodeAmount(value: AttributeValue | undefined, name: string): NanoYuan {
  const amount = value?.N === undefined ? undefined : parseYuan(value.N);
  if (amount === undefined) throw createFormatError(name);
  return amount;
}

const decodeCount = (value: AttributeValue | undefined): number | undefined =>
  value?.N === undefined ? undefined : Number(value.N);

function decodeText(value: AttributeValue | undefined, name: string): string {
  if (value?.S === undefined) throw createFormatError(name);
  return value.S;
}

const createFormatError = (name: string): Error => new Error(`ledger: ${name} is not what functions write`);
