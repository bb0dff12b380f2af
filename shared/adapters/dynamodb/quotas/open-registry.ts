/**
 * Registers accounts with open reservations for the sweeper: items of `daily` with the id `sweep`, sorted by time, kept for
 * a day.
 */
import type { OpenEntry } from '../../../billing/quota-item.ts';
import type { UnderWay } from '../../../operate/operator-ports.ts';
import type { Lookup, OpenRegistry, QuotaScan, ScannedQuota } from '../../../relay/ports/money-stores.ts';
import { Poisoned } from '../../../relay/ports/store-errors.ts';
import { buildExpressions, Table, type Attributes, type TableClient } from '../table-client.ts';
import { parseShard, readQuota, encodeText } from './quota-items.ts';

const id = 'sweep';
const keptSeconds = 24 * 60 * 60;
const progressPeriod = 'progress';

export function createOpenRegistry(client: TableClient, stack: string): OpenRegistry {
  const daily = new Table(client, stack, 'daily');
  const update = async (period: string, UpdateExpression: string, values: object): Promise<void> =>
    void (await daily.update({ id, period }, buildExpressions({ UpdateExpression }, values)));
  return {
    async register(lookups) {
      const bySecond = Map.groupBy(lookups, ({ atSeconds }) => atSeconds);
      // Adds to a set, because another batch may use the same name.
      await Promise.all(
        [...bySecond].map(([atSeconds, some]) =>
          update(buildName(some, atSeconds), 'ADD quotas :items SET expires = :expires', {
            ':items': new Set(some.map(({ item }) => item)),
            ':expires': atSeconds + keptSeconds,
          }),
        ),
      );
    },
    async *due(fromSeconds, toSeconds) {
      // Names start with a second, so the next second's text sorts after all of them.
      const values = { ':id': id, ':from': formatSecond(fromSeconds), ':to': formatSecond(toSeconds + 1) };
      for await (const items of daily.queryRange('id = :id AND period BETWEEN :from AND :to', values))
        yield items.flatMap((item) => item['quotas']?.SS ?? []);
    },
    async progress() {
      // The function's role allows queries only.
      const values = { ':id': id, ':period': progressPeriod };
      const one = { Limit: 1, ConsistentRead: true };
      const [item] = (await daily.queryNewest('id = :id AND period = :period', values, one)).items;
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

const buildName = ([first]: readonly Lookup[], atSeconds: number): string =>
  `${formatSecond(atSeconds)}#${first?.item ?? ''}`;

const formatSecond = (seconds: number): string => String(seconds).padStart(12, '0');

/** Older registrations were swept, and renewed while something was open. */
const sweptSeconds = 300;
const lookedMax = 100;

/** For operators. Leaves out unreadable items. */
export async function readOpenCalls(client: TableClient, stack: string, nowMs: number): Promise<UnderWay> {
  const nowSeconds = Math.floor(nowMs / 1000);
  const daily = new Table(client, stack, 'daily');
  const times = { ':id': id, ':from': formatSecond(nowSeconds - sweptSeconds), ':to': '9' };
  const found = await daily.queryNewest('id = :id AND period BETWEEN :from AND :to', times, {
    Limit: lookedMax,
  });
  const items = [...new Set(found.items.flatMap((item) => item['quotas']?.SS ?? []))];
  const keys = items.slice(0, lookedMax).map((account) => ({ account: encodeText(account) }));
  const quotas = await new Table(client, stack, 'quotas').read(keys, { mayBeOld: true });
  const open = quotas.flatMap((item) => readOpenEntries(item)).filter((entry) => !entry.tombstone);
  return {
    calls: open.length,
    held: open.reduce((sum, { amount, metered }) => (metered ? sum : sum + amount), 0n),
    accounts: items.length,
    looked: keys.length,
  };
}

function readOpenEntries(item: Attributes): OpenEntry[] {
  try {
    return [...readQuota(item).open.values()];
  } catch (error) {
    if (error instanceof Poisoned) return [];
    throw error;
  }
}

// Reads items of `quotas` for the sweeper, by keys or page by page.

const hasOpenEntries = 'size(#open) > :none';

/** The items are of different moments, but a close needs only its own item to be consistent. */
export function createQuotaScan(client: TableClient, stack: string): QuotaScan {
  const table = new Table(client, stack, 'quotas');
  return {
    async *read(items) {
      const keys = items.map((account) => ({ account: encodeText(account) }));
      for await (const some of table.readBatches(keys)) yield* some.map(readScannedQuota);
    },
    async open(after) {
      const input = {
        TableName: table.name,
        ConsistentRead: true,
        FilterExpression: hasOpenEntries,
        ExpressionAttributeNames: { '#open': 'open' },
        ExpressionAttributeValues: { ':none': { N: '0' } },
        ...(after !== undefined && { ExclusiveStartKey: { account: encodeText(after) } }),
      };
      const { Items = [], LastEvaluatedKey } = await client.call('Scan', input);
      return { quotas: Items.map(readScannedQuota), next: LastEvaluatedKey?.['account']?.S };
    },
  };
}

const readScannedQuota = (item: Attributes): ScannedQuota => ({
  item: item['account']?.S ?? '',
  ...parseShard(item),
  read: () => readQuota(item),
});
