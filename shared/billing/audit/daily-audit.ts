/** Recomputes the sums of `daily` from ledger rows, and those of months from days, and compares. Reads nothing itself. */
import { formatYuan } from '../money.ts';
import {
  amountNames,
  countNames,
  addFigures,
  subtractFigures,
  isAudited,
  isEmpty,
  noFigures,
  sumFigures,
  type DailyFigures,
  sumDaily,
  type DailySum,
  selectFigures,
  formatDailyKey,
} from '../daily-figures.ts';
import { type DailyKey, dayOf, buildMonthKey, removeBucket } from '../daily-keys.ts';
import type { LedgerRow } from '../ledger-row.ts';

/** A sum that differs from the rows. A repair adds `missing`. */
export interface DailyDifference {
  key: DailyKey;
  found: DailyFigures;
  items: readonly DailySum[];
  missing: DailyFigures;
  firstDay?: string | undefined;
}

/** Sums rows one by one. Needs memory by day and model, not by row. */
export class DailyAudit {
  readonly #sums = new Map<string, DailySum>();
  readonly #isWanted: (key: DailyKey) => boolean;

  constructor(isWanted: (key: DailyKey) => boolean) {
    this.#isWanted = isWanted;
  }

  add(row: LedgerRow): void {
    for (const { key, figures } of sumDaily([row])) {
      if (dayOf(key) === undefined || !this.#isWanted(key)) continue;
      const name = formatDailyKey(key);
      const before = this.#sums.get(name)?.figures ?? noFigures;
      this.#sums.set(name, { key, figures: addFigures(before, figures) });
    }
  }

  get ids(): string[] {
    return [...new Set([...this.#sums.values()].map(({ key }) => key.id))];
  }

  /** @param items of one id and its buckets. Ignores those of hours. */
  compare(id: string, items: readonly DailySum[]): DailyDifference[] {
    const present = Map.groupBy(items, ({ key }) => formatDailyKey(removeBucket(key)));
    const own = [...this.#sums].filter(([, { key }]) => key.id === id);
    const names = new Set([...present.keys(), ...own.map(([name]) => name)]);
    return [...names].flatMap((name) => {
      const [buckets = [], wanted] = [present.get(name), this.#sums.get(name)];
      const key = buckets[0] ? removeBucket(buckets[0].key) : wanted?.key;
      if (!key || dayOf(key) === undefined || !this.#isWanted(key)) return [];
      const found = sumFigures(buckets.map(({ figures }) => figures));
      const missing = findMissing(found, wanted?.figures ?? noFigures);
      return missing ? [{ key, found, items: buckets, missing }] : [];
    });
  }
}

/** Free calls have no ledger row, so counts of attempts are compared only if the whole sum is missing. */
function findMissing(found: DailyFigures, wanted: DailyFigures): DailyFigures | undefined {
  const { counts, amounts } = subtractFigures(wanted, found);
  const isCompared = isEmpty(found) ? () => true : isAudited;
  const compared = Object.fromEntries(Object.entries(counts).filter(([name]) => isCompared(name)));
  const missing = { counts: compared, amounts };
  return isEmpty(missing) ? undefined : missing;
}

export function formatDifference({ key, found, missing }: DailyDifference): string {
  const counts = countNames.flatMap((name) => {
    const is = found.counts[name] ?? 0;
    const by = missing.counts[name] ?? 0;
    return by === 0 ? [] : [`${name} ${is}, not ${is + by}`];
  });
  const amounts = amountNames.flatMap((name) => {
    const is = found.amounts[name] ?? 0n;
    const by = missing.amounts[name] ?? 0n;
    return by === 0n ? [] : [`${name} ${formatYuan(is)}, not ${formatYuan(is + by)}`];
  });
  return `daily ${key.id} ${key.period}: ${[...counts, ...amounts].join(', ')}`;
}

export type Months = ReadonlyMap<string, Omit<DailySum, 'key'>>;

/** Sums an account's days by month. A transaction writes both together, so they must agree. */
export function sumMonths(account: string, days: readonly DailySum[]): Months {
  const byMonth = Map.groupBy(days, ({ key }) => dayOf(key)?.slice(0, 7));
  byMonth.delete(undefined);
  return new Map(
    [...byMonth].map(([month = '', own]) => {
      const key = buildMonthKey(month, account);
      const figures = sumFigures(own.map((each) => selectFigures(key, each.figures)));
      const called = own.filter((each) => (each.figures.counts.calls ?? 0) > 0);
      const [firstDay] = called.map(({ key }) => dayOf(key) ?? '').toSorted();
      return [month, { figures, firstDay }];
    }),
  );
}

export const compareMonths = (account: string, wanted: Months, found: Months): DailyDifference[] =>
  [...new Set([...wanted.keys(), ...found.keys()])].flatMap((month) => {
    const { figures: is = noFigures } = found.get(month) ?? {};
    const { figures: should = noFigures, firstDay } = wanted.get(month) ?? {};
    const missing = findMissing(is, should);
    const key = buildMonthKey(month, account);
    return missing ? [{ key, found: is, items: [{ key, figures: is }], missing, firstDay }] : [];
  });
