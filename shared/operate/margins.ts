/**
 * View: margins of a UTC month by model, channel and customer: charges minus upstream costs, where the cost is known. Reads the sums of
 * `daily`, never the ledger.
 */
import { compareLargestFirst, formatYuan } from '../billing/money.ts';
import { utcMonth } from '../wire/iso-time.ts';
import { compareCharges, readAllRows, sumBy, type Summed } from './ledger/ledger.ts';
import type { AccountMonth, OperatorPorts, ServedDay } from './operator-ports.ts';
import { marginOf, reportPeriod, type AskedPeriod } from './report.ts';

export const marginGroupings = ['model', 'channel', 'customer'] as const;
type MarginGrouping = (typeof marginGroupings)[number];

/** Reading only these halves the 8 MB of a month with 300 models on two channels each. */
const counts = ['calls', 'bought_calls'] as const;
const amounts = ['charged', 'bought', 'bought_charged', 'search_bought'] as const;
const figureNames = [...counts, ...amounts];
const none = { rows: [], problems: [] };

/** Reads customers only by whole months, because daily sums take one request for each customer. Default: this month. */
export async function viewMargins<By extends MarginGrouping>(
  { ledger, clock }: OperatorPorts,
  { month, day }: Pick<AskedPeriod, 'month' | 'day'>,
  groupings: readonly By[],
) {
  const nowMs = clock.now();
  const period = reportPeriod(nowMs, day === undefined ? { month: month ?? utcMonth(nowMs) } : { day });
  const [served, months] = await Promise.all([
    groupings.every((by) => by === 'customer') ? none : readAllRows(ledger.served(period, figureNames)),
    groupings.every((by) => by !== 'customer')
      ? none
      : readAllRows(ledger.monthAccounts(period.from.slice(0, 7))),
  ]);
  return {
    period,
    groups: groupings.map((by) => {
      const nameOf = (row: AccountMonth | ServedDay): string | undefined =>
        'account' in row ? row.account : by === 'channel' ? row.channel : row.model;
      const sums = sumBy<AccountMonth | ServedDay>(by === 'customer' ? months.rows : served.rows, nameOf);
      return { by, sums: sums.toSorted(compareLosses) };
    }),
    problems: [...served.problems, ...months.problems],
  };
}

const lossOf = ({ figures }: Summed): bigint => {
  const { earned = 0n } = marginOf(figures);
  return earned < 0n ? -earned : 0n;
};

/** Sorts by the largest loss, because operators look for losses, and then by charges. */
const compareLosses = (a: Summed, b: Summed): number =>
  compareLargestFirst(lossOf(a), lossOf(b)) || compareCharges(a, b);

export const marginColumns = ['month', 'by', 'name', ...counts, ...amounts.slice(0, -1), 'margin'] as const;

/** Lists one row for each model, channel and customer. `bought` includes searches. `margin` is missing if no cost is known. */
export async function listMargins(ports: OperatorPorts, month: string | undefined) {
  const { period, groups, problems } = await viewMargins(ports, { month }, marginGroupings);
  const rows = groups.flatMap(({ by, sums }) =>
    sums.map(({ name, figures }) => {
      const { earned, bought } = marginOf(figures);
      return {
        month: period.from.slice(0, 7),
        by,
        name,
        ...Object.fromEntries(counts.map((count) => [count, figures.counts[count] ?? 0])),
        charged: formatYuan(figures.amounts.charged ?? 0n),
        bought: formatYuan(bought),
        bought_charged: formatYuan(figures.amounts.bought_charged ?? 0n),
        margin: earned === undefined ? undefined : formatYuan(earned),
      };
    }),
  );
  return { rows, problems };
}
