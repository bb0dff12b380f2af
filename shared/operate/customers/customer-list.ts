/**
 * View: customers, a page at a time, with balance, plan and what they spent this month. A page is a few requests, whether
 * there are ten customers or a hundred thousand.
 */
import { addFigures, noFigures, type DailyFigures } from '../../billing/daily-figures.ts';
import type { WholeAccount } from '../../billing/shards.ts';
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { compareCodeUnits } from '../../wire/json.ts';
import type { OperatorPorts, AccountMonth, Reading, RawRow } from '../operator-ports.ts';
import { utcMonth } from '../../wire/iso-time.ts';
import { rowsIn, spendingPace, type SpendingPace } from '../ledger/ledger.ts';
import { largestFirst } from '../../billing/amount.ts';

export interface ListedCustomer {
  account: string;
  state: 'on' | 'off' | 'bad';
  /** Of its row: why it is not used. */
  problem?: string | undefined;
  plan: AccountRow['plan'];
  note: string | undefined;
  /** Undefined: it has no item, so it never had a grant. */
  item: WholeAccount | undefined;
  /** Of its balance: why it is unknown. */
  unknown?: string | undefined;
  /** This month, in UTC. */
  month: DailyFigures;
  /** When the relay last closed a call of it, Unix seconds. */
  lastCall: number | undefined;
}

export interface CustomerPage {
  customers: ListedCustomer[];
  /** `2026-11`, in UTC. */
  month: string;
  /** All that fit. Undefined: the table goes on after what was looked at. */
  count: number | undefined;
  /** Where the next page begins. Undefined: there is none. */
  next: string | undefined;
  problems: string[];
}

interface CustomersWanted {
  /** Part of a name. */
  name?: string | undefined;
  /** `next` of the page before. */
  after?: string | undefined;
  limit: number;
}

type Ports = Pick<OperatorPorts, 'clock' | 'ledger' | 'pages'>;

/** As many rows as one request may return: of so many accounts the list is sorted by name. */
const oneRequestRows = 1_000_000;

export async function listCustomers(
  ports: Ports,
  { name, after, limit }: CustomersWanted,
): Promise<CustomerPage> {
  const isOffset = after?.startsWith('+') ?? false;
  const where = name === undefined ? undefined : { attribute: 'account', contains: name };
  const key = after === undefined || isOffset ? undefined : after;
  const all = await ports.pages.rows({
    table: 'accounts',
    after: key,
    where,
    limit: key === undefined ? oneRequestRows : limit,
  });
  const sorted = all.rows.toSorted((a, b) => compareCodeUnits(nameOf(a), nameOf(b)));
  const isWhole = key === undefined && all.next === undefined;
  const from = isOffset ? Number(after?.slice(1)) : 0;
  const shown = isWhole ? sorted.slice(from, from + limit) : all.rows.slice(0, limit);
  const next = isWhole
    ? from + limit < sorted.length
      ? `+${from + limit}`
      : undefined
    : all.rows.length > limit
      ? nameOf(shown.at(-1) ?? {})
      : all.next;
  const customers = await withMoney(ports, shown);
  return { ...customers, count: isWhole ? sorted.length : undefined, next };
}

const nameOf = ({ account }: RawRow): string => (typeof account === 'string' ? account : '');

/** Adds balances and the month to rows of `accounts`, in their order. `known`: sums of the month that were read already. */
async function withMoney(
  { clock, ledger }: Pick<Ports, 'clock' | 'ledger'>,
  rows: readonly RawRow[],
  known?: readonly Reading<AccountMonth>[],
): Promise<Pick<CustomerPage, 'customers' | 'month' | 'problems'>> {
  const month = utcMonth(clock.now());
  const names = rows.map(nameOf);
  const [balances, months] = await Promise.all([
    ledger.quotas(names),
    known ?? ledger.accountMonths(names.map((account) => ({ account, month }))),
  ]);
  const byName = new Map(balances.map((each) => ['row' in each ? each.row.account : each.key, each]));
  const spent = new Map(
    months.flatMap((each) => ('row' in each ? [[each.row.account, each.row.figures] as const] : [])),
  );
  return {
    month,
    problems: months.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])),
    customers: rows.map((row) => {
      const account = nameOf(row);
      const balance = byName.get(account);
      const item = balance && 'row' in balance ? balance.row : undefined;
      return {
        ...stateOf(row),
        account,
        item,
        unknown: balance && 'problem' in balance ? balance.problem : undefined,
        month: addFigures(noFigures, spent.get(account) ?? noFigures),
        lastCall: item?.last?.at,
      };
    }),
  };
}

function stateOf(raw: RawRow): Pick<ListedCustomer, 'state' | 'problem' | 'plan' | 'note'> {
  const reading = readRow(AccountRow, raw);
  const state = isAccountOff(raw) ? 'off' : 'on';
  if ('problem' in reading)
    return { state: 'bad', problem: reading.problem, plan: undefined, note: undefined };
  return { state, plan: reading.row.plan, note: reading.row.note };
}

// View: all customers, in an order that only their balances give. Reads the account table whole and all balances.

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

// View: who spends most this month, and whose balance lasts shortest at the pace of late. Reads sums of months, never the ledger.

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
