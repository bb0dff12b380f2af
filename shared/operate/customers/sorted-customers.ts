/** View: all customers, in an order that only their balances give. Reads the account table whole and all balances. */
import { rowsIn } from '../ledger/sum-rows.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';
import { withMoney, type CustomerPage, type ListedCustomer } from './customer-list.ts';
import { utcMonth } from '../../wire/iso-time.ts';

/** The smallest balance first; the latest call first; whoever has not called for longest first. */
export const balanceOrders = ['balance', 'last', 'idle'] as const;
export type BalanceOrder = (typeof balanceOrders)[number];

/** @param onProgress called with the number of further accounts that were read */
export async function sortCustomers(
  ports: Pick<OperatorPorts, 'clock' | 'ledger' | 'pages'>,
  { order, name, limit }: { order: BalanceOrder; name?: string | undefined; limit: number },
  onProgress: (count: number) => void = () => undefined,
): Promise<CustomerPage> {
  const { rows: months, problems } = await rowsIn(ports.ledger.monthAccounts(utcMonth(ports.clock.now())));
  const known = months.map((row) => ({ row }));
  const page = await withMoney(ports, await accountRows(ports, name, onProgress), known);
  const sorted = page.customers.toSorted((a, b) => orders[order](a, b) || (a.account < b.account ? -1 : 1));
  return {
    ...page,
    problems: [...problems, ...page.problems],
    customers: sorted.slice(0, limit),
    count: sorted.length,
    next: undefined,
  };
}

async function accountRows(
  { pages }: Pick<OperatorPorts, 'pages'>,
  name: string | undefined,
  onProgress: (count: number) => void,
): Promise<RawRow[]> {
  const where = name === undefined ? undefined : { attribute: 'account', contains: name };
  const all: RawRow[] = [];
  let after: string | undefined;
  do {
    const { rows, next } = await pages.rows({ table: 'accounts', after, where, limit: 1_000_000 });
    all.push(...rows);
    onProgress(rows.length);
    after = next;
  } while (after !== undefined);
  return all;
}

type Compare = (a: ListedCustomer, b: ListedCustomer) => number;

const available = ({ item }: ListedCustomer): number => (item ? Number(item.available) : 0);
/** Nobody who never called was last, and everybody else called after them. */
const calledAt = ({ lastCall }: ListedCustomer): number => lastCall ?? 0;

const orders: Record<BalanceOrder, Compare> = {
  balance: (a, b) => available(a) - available(b),
  last: (a, b) => calledAt(b) - calledAt(a),
  idle: (a, b) => calledAt(a) - calledAt(b),
};
