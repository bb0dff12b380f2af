/**
 * View: customers, a page at a time, with balance, plan and what they spent this month. A page is a few requests, whether
 * there are ten customers or a hundred thousand.
 */
import { addFigures, noFigures, type DailyFigures } from '../../billing/daily/daily-figures.ts';
import type { WholeAccount } from '../../billing/parts/whole.ts';
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { AccountMonth, Reading } from '../sum-reader.ts';
import type { RawRow } from '../row-tables.ts';
import { utcMonth } from '../../wire/iso-time.ts';

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

export interface CustomersWanted {
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
export async function withMoney(
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
