/**
 * View: customers, a page at a time, with balance, plan and what they spent this month: a page is a few requests, whether there
 * are ten customers or a hundred thousand.
 */
import { compareLargestFirst, convertToYuanNumber } from '../../billing/money.ts';
import { noFigures } from '../../billing/daily-figures.ts';
import { listMonthsUntil } from '../../billing/daily-keys.ts';
import { estimateDaysLeft, computeSpendingPace } from '../../billing/spending-pace.ts';
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { readRow, textOf } from '../../config/rows/read-row.ts';
import { utcMonth } from '../../wire/iso-time.ts';
import { compareCodeUnits } from '../../wire/json.ts';
import { chargedOf, readPaceMonths, readingsOf } from '../ledger/ledger.ts';
import type { AccountMonth, OperatorPorts, RawRow } from '../operator-ports.ts';

/**
 * `problem`: of its row, why it is not used; `unknown`: of its balance. `item` undefined: it never had a grant. `month`: this one,
 * in UTC. `lastCall`: when the relay last closed a call of it, Unix seconds.
 */
export type ListedCustomer = Awaited<ReturnType<typeof addMoney>>['customers'][number];

export type CustomerPage = Awaited<ReturnType<typeof listCustomers>>;

interface CustomersWanted {
  name?: string | undefined;
  after?: string | undefined;
  limit: number;
}

/** As many rows as one request may return: of so many accounts the list is sorted by name. */
const oneRequestRows = 1_000_000;

const nameOf = (row: RawRow | undefined): string => textOf(row, 'account');
const buildNameCondition = (name: string | undefined) =>
  name === undefined ? undefined : { attribute: 'account', contains: name };

export async function listCustomers(ports: OperatorPorts, wanted: CustomersWanted) {
  const { rows, names: _names, ...page } = await readCustomerRows(ports, wanted);
  return { ...(await addMoney(ports, rows)), ...page };
}

/** A page of `accounts`. `names` and `count` are those of all matches. Without them the table continues after this page. */
export async function readCustomerRows(ports: OperatorPorts, { name, after, limit }: CustomersWanted) {
  // In a table that one request returns whole, a page starts at an offset such as `+100`. A name that
  // starts with + has one more +.
  const offset = /^\+\d+$/.test(after ?? '') ? Number(after) : 0;
  const key = offset > 0 ? undefined : after?.replace(/^\+\+/, '+') || undefined;
  const wanted = {
    after: key,
    where: buildNameCondition(name),
    limit: key === undefined ? oneRequestRows : limit,
  };
  const { rows, next } = await ports.pages.rows({ table: 'accounts', ...wanted });
  const isWhole = key === undefined && next === undefined;
  const from = isWhole ? offset : 0;
  const sorted = isWhole ? rows.toSorted((a, b) => compareCodeUnits(nameOf(a), nameOf(b))) : rows;
  const shown = sorted.slice(from, from + limit);
  const goesOn = rows.length > from + limit;
  const last = goesOn ? nameOf(shown.at(-1)) : next;
  return {
    rows: shown,
    names: isWhole ? sorted.map(nameOf) : undefined,
    count: isWhole ? rows.length : undefined,
    next: isWhole ? (goesOn ? `+${from + limit}` : undefined) : last?.replace(/^\+/, '++'),
  };
}

/** Adds balances and the month to rows of `accounts`, in their order. `known`: sums of the month that were read already. */
async function addMoney(
  { clock, ledger }: OperatorPorts,
  rows: readonly RawRow[],
  known?: readonly AccountMonth[],
) {
  const month = utcMonth(clock.now());
  const wanted = listMonthsUntil(clock.now())
    .filter((each) => each <= month)
    .slice(rows.length > trendRowsMax ? -1 : -trendMonths);
  const names = rows.map(nameOf);
  const [balances, months] = await Promise.all([
    ledger.quotas(names),
    known
      ? { rows: known, problems: [] }
      : ledger
          .accountMonths(names.flatMap((account) => wanted.map((each) => ({ account, month: each }))))
          .then(readingsOf),
  ]);
  const byName = new Map(balances.map((each) => ['row' in each ? each.row.account : each.key, each]));
  const sums = new Map(months.rows.map((row) => [`${row.month} ${row.account}`, row.figures]));
  return {
    month,
    problems: months.problems,
    customers: rows.map((row) => {
      const account = nameOf(row);
      const balance = byName.get(account);
      const item = balance && 'row' in balance ? balance.row : undefined;
      return {
        ...stateOf(row),
        account,
        item,
        unknown: balance && 'problem' in balance ? balance.problem : undefined,
        month: sums.get(`${month} ${account}`) ?? noFigures,
        /** Charges by month. The last entry is this month. Empty if only this month was read. */
        trend: known
          ? []
          : wanted.map((each) => convertToYuanNumber(sums.get(`${each} ${account}`)?.amounts.charged ?? 0n)),
        lastCall: item?.last?.at,
      };
    }),
  };
}

/** Keeps a page of customers to a few requests. Longer lists read only this month. */
const trendMonths = 6;
const trendRowsMax = 100;

function stateOf(raw: RawRow) {
  const reading = readRow(AccountRow, raw);
  const problem = 'problem' in reading ? reading.problem : undefined;
  const { plan, note } = 'row' in reading ? reading.row : {};
  const state = problem === undefined ? (isAccountOff(raw) ? 'off' : 'on') : 'bad';
  return { state, problem, plan, note } as const;
}

export interface SpendingCustomer extends ListedCustomer {
  /** Days until the balance is used up at the recent pace, if anything was spent. */
  daysLeft: number | undefined;
}

export type SpendingPage = Awaited<ReturnType<typeof listSpending>>;

export type SpendingOrder = 'spent' | 'dry';
/** One request of balances, beside the eight of a month: whoever spends less than so many others runs dry later. */
const lookedMax = 100;

/** Customers who spend most this month, or whose balance will run out first. Reads monthly sums, never the ledger. */
export async function listSpending(
  ports: OperatorPorts,
  { order, limit }: { order: SpendingOrder; limit: number },
) {
  const { byAccount, paid, running, problems } = await readPaceMonths(ports);
  const inMonth = running.map((row) => [row.account, chargedOf(row)] as const);
  const spending = [...paid].filter(([, sum]) => sum > 0n);
  const most = (order === 'dry' ? spending : inMonth).toSorted(([, a], [, b]) => compareLargestFirst(a, b));
  const looked = most.slice(0, order === 'dry' ? lookedMax : limit).map(([account]) => account);
  const found = await ports.pages.rowsOf('accounts', looked);
  const byName = new Map(found.map((row) => [row['account'], row]));
  const rows = looked.map((account) => byName.get(account) ?? { account });
  const { customers, month } = await addMoney(ports, rows, running);
  const withDays = customers.map((each): SpendingCustomer => {
    const { account, item } = each;
    const pace = item && computeSpendingPace(item, byAccount.get(account) ?? [], ports.clock.now());
    return Object.assign({}, each, { daysLeft: pace && estimateDaysLeft(item, pace) });
  });
  if (order === 'dry') withDays.sort((a, b) => (a.daysLeft ?? Infinity) - (b.daysLeft ?? Infinity) || 0);
  return {
    month,
    problems,
    customers: withDays.slice(0, limit),
    active: running.length,
    looked: looked.length,
  };
}
