/** View: who spends most this month, and whose balance lasts shortest at the pace of late. Reads sums of months, never the ledger. */
import { largestFirst } from '../../billing/amount.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { spendingPace, type SpendingPace } from '../ledger/spending-pace.ts';
import { withMoney, type CustomerPage, type ListedCustomer } from './customer-list.ts';

export interface SpendingCustomer extends ListedCustomer {
  /** How long the balance lasts at the pace of late. Undefined: nothing is spent, or it has none. */
  daysLeft: number | undefined;
}

export interface SpendingPage extends Pick<CustomerPage, 'month' | 'problems'> {
  customers: SpendingCustomer[];
  /** Accounts that had a call or a grant this month. */
  active: number;
  /** Of these, the ones whose balance was looked at: those that spent most. */
  looked: number;
}

export type SpendingOrder = 'spent' | 'dry';
/** Three requests of a hundred balances each: whoever spends less than so many others runs dry later. */
const lookedMax = 300;

export async function listSpending(
  ports: Pick<OperatorPorts, 'clock' | 'ledger' | 'pages'>,
  { order, limit }: { order: SpendingOrder; limit: number },
): Promise<SpendingPage> {
  const pace = await spendingPace(ports);
  const { charged, running } = pace;
  const inMonth = running.map((row) => [row.account, row.figures.amounts.charged ?? 0n] as const);
  const most = (order === 'dry' ? [...charged] : inMonth).toSorted(([, a], [, b]) => largestFirst(a, b));
  const looked = most.slice(0, order === 'dry' ? lookedMax : limit).map(([account]) => account);
  const found = await ports.pages.rowsOf('accounts', looked);
  const byName = new Map(found.map((row) => [row['account'], row]));
  const page = await withMoney(
    ports,
    looked.map((account) => byName.get(account) ?? { account }),
    running.map((row) => ({ row })),
  );
  const customers = page.customers.map((each) => ({ ...each, daysLeft: daysLeftOf(each, pace) }));
  if (order === 'dry') customers.sort((a, b) => (a.daysLeft ?? Infinity) - (b.daysLeft ?? Infinity) || 0);
  return {
    month: page.month,
    problems: [...pace.problems, ...page.problems],
    customers: customers.slice(0, limit),
    active: running.length,
    looked: looked.length,
  };
}

function daysLeftOf({ account, item }: ListedCustomer, { charged, days }: SpendingPace): number | undefined {
  const spent = charged.get(account);
  return item && spent ? Math.max(0, (Number(item.available) / Number(spent)) * days) : undefined;
}
