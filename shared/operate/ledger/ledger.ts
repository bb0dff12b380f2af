/** Views of ledger rows: selected, listed, totalled, as JSON; and what readings and sums of `daily` have in common. */
import { formatYuan, compareLargestFirst, type NanoYuan } from '../../billing/money.ts';
import {
  addFigures,
  countRow,
  noFigures,
  sumFigures,
  type DailyFigures,
} from '../../billing/daily-figures.ts';
import {
  findAttributedName,
  isAttributedBy,
  isAttributedTo,
  latePrefix,
  findLedgerTimeMs,
  formatTags,
  type AttributedBy,
  type Attribution,
  type CloseRow,
  type LedgerRow,
} from '../../billing/ledger-row.ts';
import { listPaceMonths, computePaid } from '../../billing/spending-pace.ts';
import { isoTime, utcDay } from '../../wire/iso-time.ts';
import { compareCodeUnits } from '../../wire/json.ts';
import type { LedgerSelection, OperatorPorts, Reading } from '../operator-ports.ts';
import { Failure, usageFailure } from '../plan.ts';

interface ReadRows<Row> {
  rows: Row[];
  /** A sentence for each row that is left out because it cannot be read. */
  problems: string[];
}

export const readingsOf = <Row>(readings: readonly Reading<Row>[]): ReadRows<Row> => ({
  rows: readings.flatMap((each) => ('row' in each ? [each.row] : [])),
  problems: readings.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])),
});

export const readAllRows = async <Row>(pages: AsyncIterable<Reading<Row>[]>): Promise<ReadRows<Row>> =>
  readingsOf((await Array.fromAsync(pages)).flat());

export const sumOfFigures = (all: readonly { figures: DailyFigures }[]): DailyFigures =>
  sumFigures(all.map(({ figures }) => figures));

export interface Summed {
  name: string;
  figures: DailyFigures;
}

/** In groups; those whose group has no name are left out. */
export const sumBy = <Row extends { figures: DailyFigures }>(
  rows: readonly Row[],
  nameOf: (row: Row) => string | undefined,
): Summed[] =>
  [...Map.groupBy(rows, nameOf)].flatMap(([name, all]) =>
    name === undefined ? [] : [{ name, figures: sumOfFigures(all) }],
  );

export const chargedOf = ({ figures }: { figures: DailyFigures }): NanoYuan => figures.amounts.charged ?? 0n;

export const compareCharges = (a: Summed, b: Summed): number =>
  compareLargestFirst(chargedOf(a), chargedOf(b));

export interface LedgerFilter extends LedgerSelection, Attribution {
  model?: string | undefined;
}

export async function* selectRows(
  { ledger }: OperatorPorts,
  { account, fromMs, toMs, model, ...attributed }: LedgerFilter,
): AsyncGenerator<ReadRows<LedgerRow>> {
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs)
    throw usageFailure('--from must be before --to, which is not included');
  for await (const page of ledger.ledger({ account, fromMs, toMs })) {
    const { rows, problems } = readingsOf(page);
    const isOfModel = (row: LedgerRow): boolean =>
      model === undefined || (row.kind !== 'grant' && row.model === model);
    yield { rows: rows.filter((row) => isOfModel(row) && isAttributedTo(row, attributed)), problems };
  }
}

/** The newest first. */
export async function listLedger(
  ports: OperatorPorts,
  { limit, ...filter }: LedgerFilter & { limit: number },
) {
  let rows: LedgerRow[] = [];
  let count = 0;
  const problems: string[] = [];
  for await (const page of selectRows(ports, filter)) {
    count += page.rows.length;
    rows = [...rows, ...page.rows]
      .toSorted((a, b) => findLedgerTimeMs(b) - findLedgerTimeMs(a))
      .slice(0, limit);
    problems.push(...page.problems);
  }
  return { rows, count, problems };
}

/** For programs: attributes named as in the table (but `at` is `booked`), exact decimal amounts. */
export function formatLedgerRow(row: LedgerRow): Record<string, string | number | boolean> {
  const { at, tags, ...rest }: LedgerRow & Pick<CloseRow, 'tags'> = row;
  const cells = {
    began: isoTime(findLedgerTimeMs(row)),
    booked: at,
    ...rest,
    tags: tags && formatTags(tags),
  };
  return Object.fromEntries(
    Object.entries(cells).flatMap(([name, value]: [string, string | number | boolean | bigint | undefined]) =>
      value === undefined ? [] : [[name, typeof value === 'bigint' ? formatYuan(value) : value]],
    ),
  );
}

const groupOf = {
  account: (row: LedgerRow) => row.account,
  model: (row: LedgerRow) => (row.kind === 'grant' ? '(grants)' : row.model),
  day: (row: LedgerRow) => utcDay(findLedgerTimeMs(row)),
};
export type Grouping = keyof typeof groupOf | AttributedBy;
export const isGrouping = (written: string): written is Grouping =>
  Object.hasOwn(groupOf, written) || isAttributedBy(written);
export const wantedGroupings = [...Object.keys(groupOf), 'end_user', 'tag:NAME'].join(', ');

export const groupIn = (row: LedgerRow, by: Grouping): string => {
  if (!isAttributedBy(by)) return groupOf[by](row);
  return row.kind === 'grant' ? '(grants)' : (findAttributedName(row, by) ?? '(none)');
};

/** Exact sums of groups of rows, sorted. Of no group: the row is left out. */
export async function sumRows<Row extends LedgerRow>(
  pages: AsyncIterable<ReadRows<Row>>,
  groupsOf: (row: Row) => string[] | undefined,
) {
  const sums = new Map<string, DailyFigures>();
  const problems: string[] = [];
  for await (const page of pages) {
    problems.push(...page.problems);
    for (const row of page.rows) {
      const key = groupsOf(row)?.join(separator);
      if (key !== undefined) sums.set(key, addFigures(sums.get(key) ?? noFigures, countRow(row)));
    }
  }
  const totals = [...sums]
    .toSorted(([a], [b]) => compareCodeUnits(a, b))
    .map(([key, figures]) => ({ groups: key.split(separator), figures }));
  return { totals, all: sumOfFigures(totals), problems };
}

const separator = '\u0000';

/** The sums of all accounts for the months that the pace of spending is taken from. `running`: those of this month. */
export async function readPaceMonths({ clock, ledger }: OperatorPorts) {
  const months = listPaceMonths(clock.now());
  const read = await Promise.all(months.map(async (month) => readAllRows(ledger.monthAccounts(month))));
  const byAccount = Map.groupBy(
    read.flatMap(({ rows }) => rows),
    ({ account }) => account,
  );
  const paid = [...byAccount].map(([account, sums]) => [account, computePaid(sumOfFigures(sums))] as const);
  return {
    byAccount,
    /** The amount that each account's balance paid in these months. */
    paid: new Map(paid),
    running: read[0]?.rows ?? [],
    problems: read.flatMap(({ problems }) => problems),
  };
}

/**
 * The charge of a call after its reservation had expired. It has its own ledger row, so the total cost needs both.
 * One more read, for expired calls only.
 */
export async function findLateCharge(
  { ledger }: OperatorPorts,
  { kind, id }: LedgerRow,
): Promise<CloseRow | undefined> {
  if (kind !== 'expired') return undefined;
  const reading = await ledger.request(latePrefix + id);
  if (!reading) return undefined;
  if ('problem' in reading)
    throw new Failure(`the ledger row of its late charge cannot be read: ${reading.problem}`);
  return reading.row.kind === 'grant' ? undefined : reading.row;
}
