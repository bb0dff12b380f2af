/** Reads the items of accounts for operators: one account, or many at once. A part that cannot be read is said. */
import { wholeOf, type WholeAccount } from '../../../billing/parts/whole.ts';
import type { LedgerReader } from '../../../operate/ledger-reader.ts';
import type { Reading } from '../../../operate/sum-reader.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import type { Attributes } from '../attributes.ts';
import type { Store } from '../operator-client.ts';
import { partKey, partName, partOf, quotaOf } from '../quotas/quota-attributes.ts';
import { partsOf, readWhole } from '../quotas/whole-account.ts';
import type { QuotaItem } from '../../../billing/quota-item.ts';
import { itemsOf, reading } from './table-pages.ts';

export function dynamoBalanceReader(store: Store): Pick<LedgerReader, 'quota' | 'quotas'> {
  const { client, explained, target } = store;
  const table = { client, TableName: physicalTableName(target.stack, 'quotas') };
  const quota: LedgerReader['quota'] = (account) =>
    explained(readWhole(table, account).then((row) => row && { row }, unreadable(account)));
  return {
    quota,
    async quotas(accounts) {
      const keys = [...new Set(accounts)].map((account) => partKey({ account }));
      const items = await itemsOf(store, 'quotas', keys);
      const found = items.map((item) => reading(item, partOf(item).account, firstOf));
      const others = found.flatMap((each) => ('row' in each ? each.row.others : []));
      const more = await itemsOf(store, 'quotas', others.map(partKey));
      const parts = new Map(more.map((item) => [item['account']?.S ?? '', item]));
      return found.map((each) => ('row' in each ? wholeReading(each.row, parts) : each));
    },
  };
}

/** An account's first part, and the names of the others. */
interface FirstPart {
  first: QuotaItem;
  others: { account: string; part: number }[];
}

function firstOf(item: Attributes): FirstPart {
  const first = quotaOf(item);
  return { first, others: partsOf(first.account, first.made).slice(1) };
}

/** The parts are not of one moment: what moves between them meanwhile shows as `moved`. `quota` reads one account exactly. */
function wholeReading(
  { first, others }: FirstPart,
  parts: ReadonlyMap<string, Attributes>,
): Reading<WholeAccount> {
  const all: [QuotaItem, ...QuotaItem[]] = [first];
  for (const other of others) {
    const name = partName(other);
    const item = parts.get(name);
    if (!item)
      return { key: first.account, problem: `quotas: the part ${name} is missing, so the sums are unknown` };
    const read = reading(item, first.account, quotaOf);
    if ('problem' in read) return read;
    all.push(read.row);
  }
  return { row: wholeOf(all) };
}

/** An item that cannot be read is said, any other error is thrown. */
const unreadable =
  (account: string) =>
  (error: unknown): { key: string; problem: string } => {
    if (!(error instanceof Error && error.message.startsWith('quotas: '))) throw error;
    return { key: account, problem: error.message };
  };
