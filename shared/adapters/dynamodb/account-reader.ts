/** Reads an account's item, ledger rows and sums for its own key. */
import { formatAccountId, buildMonthKey } from '../../billing/daily-keys.ts';
import { grantPrefix, latePrefix } from '../../billing/ledger-row.ts';
import type { AccountRows } from '../../relay/ports/config-store.ts';
import type { AccountReader } from '../../relay/ports/money-stores.ts';
import { dailySumOf } from './daily-sums.ts';
import { decodeCloseRow, decodeGrantRow, findLedgerPartitions, readNewestRows } from './ledger-store.ts';
import { readWhole } from './quotas/whole-account.ts';
import { attributesOf, Table, type Attributes, type TableClient } from './table-client.ts';

export function createAccountReader(client: TableClient, stack: string): AccountReader {
  const ledger = new Table(client, stack, 'ledger');
  const daily = new Table(client, stack, 'daily');
  const partitionsOf = (account: string): Promise<string[]> => findLedgerPartitions(client, stack, account);
  const readRanges = async (partitions: readonly string[], prefix: string): Promise<Attributes[]> => {
    const condition = 'account = :account AND begins_with(id, :prefix)';
    const ranges = partitions.map((account) =>
      Array.fromAsync(
        ledger.queryRange(condition, { ':account': account, ':prefix': prefix }, { ConsistentRead: false }),
      ),
    );
    return (await Promise.all(ranges)).flat(2);
  };
  return {
    quota: (account) => readWhole(new Table(client, stack, 'quotas'), account),
    async requests(account, before, Limit) {
      const { items } = await readNewestRows(ledger, await partitionsOf(account), { before, Limit });
      return items.map(decodeCloseRow);
    },
    grants: async (account) => (await readRanges([account], grantPrefix)).map(decodeGrantRow),
    late: async (account) => (await readRanges(await partitionsOf(account), latePrefix)).map(decodeCloseRow),
    // `~` sorts after the digits of a day.
    async days(account, from, Limit, to = '~') {
      const values = { ':id': formatAccountId(account), ':from': `day#${from}`, ':to': `day#${to}` };
      const { items } = await daily.queryNewest('id = :id AND period BETWEEN :from AND :to', values, {
        Limit,
      });
      return items.map(dailySumOf);
    },
    async months(account, months) {
      const reads = months.map(async (month) => {
        const { id, period } = buildMonthKey(month, account);
        const values = { ':id': id, ':period': period };
        return daily.queryNewest('id = :id AND period = :period', values, { Limit: 1 });
      });
      return (await Promise.all(reads)).flatMap(({ items }) => items.map(dailySumOf));
    },
  };
}

export const createAccountRows = (client: TableClient, stack: string): AccountRows => ({
  async existing(names) {
    const keys = names.map((account) => attributesOf({ account }));
    const items = await new Table(client, stack, 'accounts').read(keys, { attributes: ['account'] });
    return new Set(items.map(({ account }) => account?.S ?? ''));
  },
});
