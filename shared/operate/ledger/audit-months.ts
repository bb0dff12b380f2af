/** Compares the sums of an account's months with those of its days, and corrects them if asked to. */
import { splitBehind, type DailyDifference } from '../../billing/audit/daily-audit.ts';
import { monthDifferences, monthsOf, type Months } from '../../billing/audit/month-audit.ts';
import { noFigures } from '../../billing/daily/daily-figures.ts';
import { accountId } from '../../billing/daily/daily-keys.ts';
import type { DailySum } from '../../billing/daily/daily-sums.ts';
import type { Reading } from '../sum-reader.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { readDaily, type DailyOutcome } from './audit-daily.ts';

export interface MonthTask {
  account: string;
  /** The account's items of days, as they were read before. */
  days: readonly Reading<DailySum>[];
  rebuild: boolean;
}

/** A correction that meets another write is made again at most so often. */
const triesMax = 5;

/**
 * The running month is compared too: what adds to a day adds to its month in the same transaction, so a month that
 * did not change while the days were read is of the same moment as they are.
 */
export async function auditMonths(ports: OperatorPorts, task: MonthTask): Promise<DailyOutcome> {
  const outcome: DailyOutcome = { findings: [], corrected: 0, behind: 0 };
  const days = task.rebuild ? await readDaily(ports, accountId(task.account)) : task.days;
  // What cannot be read is a finding of the days.
  if (days.some((each) => 'problem' in each)) return outcome;
  const months = monthsOf(task.account, rowsOf(days));
  const first = await readMonths(ports, task.account, months);
  if (first.problems.length > 0) return { ...outcome, findings: first.problems };
  if (!task.rebuild && monthDifferences(task.account, months, first.found).length === 0) return outcome;
  const { corrected, left } = task.rebuild
    ? await rebuildMonths(ports, task.account, months)
    : { corrected: 0, left: await settledDifferences(ports, task.account, months) };
  return { ...outcome, corrected, ...splitBehind(left) };
}

async function rebuildMonths(
  ports: OperatorPorts,
  account: string,
  known: Months,
): Promise<{ corrected: number; left: DailyDifference[] }> {
  let corrected = 0;
  for (let tries = 1; ; tries += 1) {
    const left: DailyDifference[] = [];
    for (const difference of await differencesNow(ports, account, known))
      if (await ports.ledger.addToDaily(difference)) corrected += 1;
      else left.push(difference);
    if (left.length === 0 || tries === triesMax) return { corrected, left };
  }
}

/** Those of months that did not change while the days were read. */
async function settledDifferences(
  ports: OperatorPorts,
  account: string,
  known: Months,
): Promise<DailyDifference[]> {
  const differences = await differencesNow(ports, account, known);
  if (differences.length === 0) return [];
  const { found: after } = await readMonths(ports, account, known);
  return differences.filter(({ key, found }) => {
    const month = key.id.slice(-7);
    const same = monthDifferences(
      account,
      new Map([[month, after.get(month) ?? noFigures]]),
      new Map([[month, found]]),
    );
    return same.length === 0;
  });
}

/** The months are read before the days: a correction is made if its month is still as it was then. */
async function differencesNow(
  ports: OperatorPorts,
  account: string,
  known: Months,
): Promise<DailyDifference[]> {
  const { found } = await readMonths(ports, account, known);
  const days = await readDaily(ports, accountId(account));
  const wanted = monthsOf(account, rowsOf(days));
  // A month that began meanwhile was not read.
  return monthDifferences(account, wanted, found).filter(({ key }) => known.has(key.id.slice(-7)));
}

async function readMonths({ ledger }: OperatorPorts, account: string, months: Months) {
  const items = await ledger.accountMonths([...months.keys()].map((month) => ({ account, month })));
  return {
    found: new Map(rowsOf(items).map(({ month, figures }) => [month, figures])),
    problems: items.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])),
  };
}

const rowsOf = <Row>(readings: readonly Reading<Row>[]): Row[] =>
  readings.flatMap((each) => ('row' in each ? [each.row] : []));
