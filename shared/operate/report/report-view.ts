/**
 * View: what a week or a month brought: spend, margin, failures, slow channels, accounts near empty, open marks. Reads
 * the sums of `daily`, balances, and the rows of the configuration; never the ledger.
 */
import { largestFirst } from '../../billing/amount.ts';
import { noFigures, type DailyFigures } from '../../billing/daily/daily-figures.ts';
import { findingsIn, type Finding } from '../config/findings.ts';
import { rowsIn } from '../ledger/sum-rows.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { contentWithin } from '../overview/first-content-time.ts';
import { accountsNearEmpty, type NearEmptyAccount } from './accounts-near-empty.ts';
import { groupServed, sumOf, type ServedGroup } from './group-served.ts';
import { reportPeriod, type AskedPeriod, type ReportPeriod } from './report-period.ts';

export interface ReportedChannel extends ServedGroup {
  /** Bounds of the time to first content, in milliseconds. Undefined: no call had content. */
  medianMs: number | undefined;
  slowMs: number | undefined;
}

export interface ReportView {
  stack: string;
  madeMs: number;
  period: ReportPeriod;
  whole: DailyFigures;
  /** Of the days before. */
  before: DailyFigures;
  /** All days of the period, by date, those without calls too. */
  days: ServedGroup[];
  /** The most charged first. */
  models: ServedGroup[];
  /** The slowest first. */
  channels: ReportedChannel[];
  nearEmpty: NearEmptyAccount[];
  marks: Finding[];
  /** What could not be read, and is missing in the figures. */
  problems: string[];
}

type ReportPorts = Pick<OperatorPorts, 'clock' | 'config' | 'ledger' | 'target'>;

export async function viewReport(ports: ReportPorts, asked: AskedPeriod): Promise<ReportView> {
  const { clock, ledger, target } = ports;
  const madeMs = clock.now();
  const period = reportPeriod(madeMs, asked);
  const [served, before, nearEmpty, marks] = await Promise.all([
    rowsIn(ledger.served(period)),
    rowsIn(ledger.served(period.before)),
    accountsNearEmpty(ports),
    openMarks(ports),
  ]);
  const byDay = new Map(groupServed(served.rows, ({ day }) => day).map((each) => [each.name, each]));
  return {
    stack: target.stack,
    madeMs,
    period,
    whole: sumOf(served.rows),
    before: sumOf(before.rows),
    days: period.days.map((day) => byDay.get(day) ?? { name: day, figures: noFigures }),
    models: groupServed(served.rows, ({ model }) => model).toSorted(
      (a, b) =>
        largestFirst(a.figures.amounts.charged ?? 0n, b.figures.amounts.charged ?? 0n) ||
        (b.figures.counts.calls ?? 0) - (a.figures.counts.calls ?? 0),
    ),
    channels: groupServed(served.rows, ({ channel }) => channel)
      .map(withTimes)
      .toSorted((a, b) => (b.slowMs ?? 0) - (a.slowMs ?? 0) || a.name.localeCompare(b.name)),
    nearEmpty: nearEmpty.accounts,
    marks,
    problems: [...served.problems, ...before.problems, ...nearEmpty.problems],
  };
}

const withTimes = ({ name, figures }: ServedGroup): ReportedChannel => ({
  name,
  figures,
  medianMs: contentWithin(figures, 0.5),
  slowMs: contentWithin(figures, 0.95),
});

async function openMarks(ports: Pick<ReportPorts, 'clock' | 'config' | 'target'>): Promise<Finding[]> {
  const newest = await ports.config.newest();
  const [rows, earlier] = await Promise.all([
    ports.config.tables(),
    newest === undefined ? undefined : ports.config.rows(newest),
  ]);
  return findingsIn(rows, ports, { earlier });
}
