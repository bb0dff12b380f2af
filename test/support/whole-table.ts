import type { QuotaItem } from '../../shared/billing/quota-item.ts';
import type { GrantStore, OpenRegistry, QuotaScan } from '../../shared/relay/ports/money-stores.ts';

/** A registry without memory, so that each sweep reads the whole table. */
export const noRegistry: OpenRegistry = {
  register: async () => {},
  async *due() {},
  progress: async () => undefined,
  keepProgress: async () => {},
};

/** Each scheduled run reads the whole table, not only the part of this quarter of an hour. */
export const wholeGrants = (grants: GrantStore): GrantStore => ({
  ...grants,
  unmarked: () => grants.unmarked({ part: 0, of: 1 }),
});

/** A table of one page. */
export const scanOf = (items: () => Promise<QuotaItem[]>): QuotaScan => ({
  async *read() {},
  async open() {
    const quotas = (await items()).map((item) => ({
      item: `${item.account} ${item.shard}`,
      account: item.account,
      shard: item.shard,
      read: () => item,
    }));
    return { quotas, next: undefined };
  },
});
