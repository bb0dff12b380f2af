/**
 * View: an account's month, from what it began with to what it ended with, by day and model. Everything is added up twice: by
 * months against the account's item, which has the money itself, and by days against the month. Reads sums, never calls. Must
 * never be lenient: a statement is sent to customers.
 */
import { formatYuan, parseYuan, type NanoYuan } from '../billing/money.ts';
import { computeBalance, type DailyFigures } from '../billing/daily-figures.ts';
import { formatAccountId, grantsModel, listMonthsUntil } from '../billing/daily-keys.ts';
import type { AttributedBy, LedgerRow, WrittenGrant } from '../billing/ledger-row.ts';
import type { WholeAccount } from '../billing/shards.ts';
import { requestTimeMs } from '../wire/ids.ts';
import { AccountRow } from '../config/rows/account-row.ts';
import { parseRow, textOf } from '../config/rows/read-row.ts';
import { listAccountPrices } from '../relay/account/account-prices.ts';
import { listOfferedModels } from '../relay/catalog/catalog-lists.ts';
import type { AccountPrice } from '../wire/public-api.ts';
import { utcMonth } from '../wire/iso-time.ts';
import { compileRows } from './config/row-changes.ts';
import { compareCodeUnits, listTexts } from '../wire/json.ts';
import { readCustomerRows } from './customers/customer-list.ts';
import {
  groupIn,
  compareCharges,
  readingsOf,
  readAllRows,
  selectRows,
  sumOfFigures,
  sumRows,
  type Summed,
} from './ledger/ledger.ts';
import type { AccountMonth, OperatorPorts } from './operator-ports.ts';
import { formatCount, Failure, formatMoney, usageFailure } from './plan.ts';

export type StatementDay = Statement['days'][number];

/** `day` and `month` are of UTC. `closing`: opening + granted - charged + metered, which no balance paid. `problems`: what does not add up. */
export type Statement = Awaited<ReturnType<typeof read>>;

interface StatementWanted {
  account: string;
  month: string;
  /** The calls are summed by it in the place of days and models, from the rows of the month. */
  by?: AttributedBy | undefined;
  /** Adds the customer's current own prices, which requires reading the configuration. */
  prices?: boolean | undefined;
  /** Adds the customer's name and address, for what is sent to them. */
  contact?: boolean | undefined;
  /** Sums follow calls within seconds: for so long they are read again until they agree. */
  waitMs: number;
}

const pauseMs = 1000;

export async function viewStatement(ports: OperatorPorts, wanted: StatementWanted): Promise<Statement> {
  const { clock } = ports;
  refuseMonth(wanted.month, clock.now());
  const untilMs = clock.now() + wanted.waitMs;
  for (;;) {
    const statement = await read(ports, wanted);
    if (statement.problems.length === 0 || clock.now() + pauseMs > untilMs) return statement;
    await clock.sleep(pauseMs);
  }
}

/** Throws a Failure for what is no month, and for one that has not begun. */
export function refuseMonth(month: string, nowMs: number): void {
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(month)) throw usageFailure('--month: use a month such as 2026-10');
  if (month > utcMonth(nowMs)) throw usageFailure(`--month: ${month} is in the future`);
}

async function read(ports: OperatorPorts, { account, month, by, prices, contact }: StatementWanted) {
  const { clock, ledger } = ports;
  const nowMs = clock.now();
  const [quota, readings, days, pages, summed, ownPrices, row] = await Promise.all([
    ledger.quota(account),
    ledger.accountMonths(listMonthsUntil(nowMs).map((each) => ({ account, month: each }))),
    readAllRows(ledger.daily(formatAccountId(account), { from: `${month}-01`, to: `${month}-31` })),
    Array.fromAsync(ledger.grants(account)),
    by && sumCalls(ports, { account, month, by }),
    prices ? readOwnPrices(ports, account) : undefined,
    contact ? ports.tables.get('accounts', account) : undefined,
  ]);
  if (!quota) throw usageFailure(`${account} has no grants and no calls`);
  if ('problem' in quota) throw new Failure(quota.problem);
  const months = readingsOf(readings);
  const opening = openingOf(months.rows, month);
  const sum = sumOfFigures(days.rows);
  const grants = pages.flat().filter(({ applied }) => applied?.startsWith(month) ?? false);
  const isRunning = month === utcMonth(nowMs);
  return {
    account,
    month,
    ...computeBalance(opening, sum),
    grants: grants.toSorted((a, b) => ((a.applied ?? '') < (b.applied ?? '') ? -1 : 1)),
    days: days.rows
      // `day#2026-10-07#gpt-4o`
      .map(({ key: { period }, figures }) => ({ day: period.slice(4, 14), model: period.slice(15), figures }))
      .filter(({ model }) => model !== grantsModel),
    /** Present only if the caller asked for groups. */
    summed: summed?.groups,
    sum,
    /** Present only if the caller asked for them. */
    prices: ownPrices,
    contact: listTexts(...['name', 'email'].map((name) => textOf(row?.['contact'], name))),
    isRunning,
    problems: [
      ...months.problems,
      ...days.problems,
      ...(summed?.problems ?? []),
      ...findMismatches(quota.row, month, { months: months.rows, sum, grants, summed: summed?.groups }),
      ...(isRunning ? [] : warnOfRunning(quota.row, month)),
    ],
  };
}

async function readOwnPrices(ports: OperatorPorts, account: string): Promise<AccountPrice[]> {
  const [rows, raw] = await Promise.all([ports.config.tables(), ports.tables.get('accounts', account)]);
  const { snapshot } = compileRows(ports, rows);
  const nowMs = ports.clock.now();
  const models = listOfferedModels(snapshot, nowMs);
  return listAccountPrices({ snapshot, account: parseRow(AccountRow, raw), models, nowMs }).prices;
}

const openingOf = (months: readonly AccountMonth[], month: string): NanoYuan =>
  computeBalance(0n, sumOfFigures(months.filter((each) => each.month < month))).closing;

const statedAmounts = ['opening', 'granted', 'charged', 'metered', 'closing'] as const;
type Stated = Pick<Statement, 'account' | (typeof statedAmounts)[number]>;

/** Once for text, CSV, JSON and the console: the name, the head, the value, and what people read in its place. */
export type ViewColumn<Row> = readonly [
  name: string,
  head: string,
  value: (row: Row) => string | number | null,
  text?: (row: Row) => string,
];

export const statedColumns: readonly ViewColumn<Stated>[] = [
  ['account', 'ACCOUNT', ({ account }) => account],
  ...statedAmounts.map((name): ViewColumn<Stated> => [
    name,
    name.toUpperCase(),
    (row) => formatYuan(row[name]),
  ]),
];

/** So many sums of months are read for a page: eight requests. */
const monthSumsMax = 800;

/**
 * A page of customers with their balances of a month, from sums of months; whether these are what the account has, the statement
 * of each says. Who had no call or grant until then is left out.
 */
export async function viewStatements(ports: OperatorPorts, month: string, after: string) {
  refuseMonth(month, ports.clock.now());
  const until = listMonthsUntil(ports.clock.now()).filter((each) => each <= month);
  const limit = Math.min(100, Math.floor(monthSumsMax / until.length));
  const { rows, ...page } = await readCustomerRows(ports, { after, limit });
  const keys = rows.flatMap((row) => until.map((each) => ({ account: String(row['account']), month: each })));
  const read = readingsOf(await ports.ledger.accountMonths(keys));
  const statements = [...Map.groupBy(read.rows, ({ account }) => account)].map(([account, months]) => {
    const own = sumOfFigures(months.filter((each) => each.month === month));
    return Object.assign({ account }, computeBalance(openingOf(months, month), own));
  });
  statements.sort((a, b) => compareCodeUnits(a.account, b.account));
  return { ...page, statements, problems: read.problems };
}

async function sumCalls(
  ports: OperatorPorts,
  { account, month, by }: { account: string; month: string; by: AttributedBy },
) {
  const fromMs = Date.parse(`${month}-01`);
  const toMs = new Date(fromMs).setUTCMonth(new Date(fromMs).getUTCMonth() + 1);
  const groupsOf = (row: LedgerRow) => (row.kind === 'grant' ? undefined : [groupIn(row, by)]);
  const rows = selectRows(ports, { account, fromMs, toMs });
  const { totals, problems } = await sumRows(rows, groupsOf);
  const groups = totals.map(({ groups: [name = ''], figures }): Summed => ({ name, figures }));
  return { groups: groups.toSorted(compareCharges), problems };
}

interface AddedUp {
  months: readonly AccountMonth[];
  sum: DailyFigures;
  grants: readonly WrittenGrant[];
  summed: readonly Summed[] | undefined;
}

function findMismatches(
  { granted, spent, metered = 0n }: WholeAccount,
  month: string,
  { months, sum, grants, summed }: AddedUp,
): string[] {
  const all = sumOfFigures(months).amounts;
  const own = sumOfFigures(months.filter((each) => each.month === month)).amounts;
  const days = sum.amounts;
  const listed = grants.reduce((total, { amount }) => total + (parseYuan(amount) ?? 0n), 0n);
  const pairs: [what: string, found: NanoYuan, other: string, wanted: NanoYuan][] = [
    ['granted, all months', all.granted ?? 0n, 'the account', granted],
    ['charged, all months', all.charged ?? 0n, 'the account', spent],
    ['metered, all months', all.metered ?? 0n, 'the account', metered],
    [`granted in ${month}, by day`, days.granted ?? 0n, 'the month', own.granted ?? 0n],
    [`charged in ${month}, by day`, days.charged ?? 0n, 'the month', own.charged ?? 0n],
    [`grants applied in ${month}`, listed, 'the total of their days', days.granted ?? 0n],
  ];
  if (summed) {
    const byRow = sumOfFigures(summed).amounts.charged ?? 0n;
    pairs.push([`charged in ${month}, by row`, byRow, 'the total of its days', days.charged ?? 0n]);
  }
  return pairs.flatMap(([what, found, other, wanted]) =>
    found === wanted ? [] : [`${what}: ${formatMoney(found)}, but ${other} has ${formatMoney(wanted)}`],
  );
}

/** The charge of a call counts in the month in which it began, so a month with open calls is not over. */
function warnOfRunning({ open }: WholeAccount, month: string): string[] {
  const count = [...open.keys()].filter((id) => {
    const ms = requestTimeMs(id);
    // An id without a time may belong to any month.
    return ms === undefined || utcMonth(ms) <= month;
  }).length;
  return count === 0
    ? []
    : [
        `${formatCount(count, 'call')} of ${month} still in flight: create the statement again when ${count === 1 ? 'it has' : 'they have'} ended`,
      ];
}

/** Columns of a statement for CSV and JSON, one amount per line. */
export const statementColumns = [
  'kind',
  'day',
  'model',
  'grant',
  'calls',
  'plan_calls',
  'prompt_tokens',
  'cached_tokens',
  'completion_tokens',
  'amount',
  'reason',
  'failed_calls',
  'group',
] as const;

/** `calls` counts every call, as all other views do; `failed_calls` are those of them without a complete answer. */
export const formatFigures = ({ counts, amounts }: DailyFigures) => ({
  calls: counts.calls ?? 0,
  failed_calls: counts.failures ?? 0,
  plan_calls: counts.plan_calls ?? 0,
  prompt_tokens: counts.prompt_tokens ?? 0,
  cached_tokens: counts.cached_tokens ?? 0,
  completion_tokens: counts.completion_tokens ?? 0,
  amount: formatYuan(-(amounts.charged ?? 0n)),
});

export const noteFailures = ({ counts }: DailyFigures): string | undefined =>
  (counts.failures ?? 0) === 0
    ? undefined
    : 'Calls include failed ones, which have no complete answer. Failed calls are free except for content delivered before the failure.';

/** Charges are below 0; the amounts before `closing` add up to it exactly. */
export function listStatementRows({
  opening,
  metered,
  closing,
  month,
  grants,
  days,
  summed,
}: Statement): object[] {
  const calls = summed ? summed.map(({ name, figures }) => ({ group: name, figures })) : days;
  return [
    { kind: 'opening', day: `${month}-01`, amount: formatYuan(opening) },
    ...grants.map(({ grantId, amount, applied, reason }) => {
      const row = { kind: 'grant', day: applied?.slice(0, 10), grant: grantId, amount };
      return reason === undefined ? row : Object.assign(row, { reason });
    }),
    ...calls.map(({ figures, ...of }) => Object.assign({ kind: 'calls', ...of }, formatFigures(figures))),
    ...(metered === 0n ? [] : [{ kind: 'metered', amount: formatYuan(metered) }]),
    { kind: 'closing', amount: formatYuan(closing) },
  ];
}
