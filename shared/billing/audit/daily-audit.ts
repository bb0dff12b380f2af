/** Recomputes the sums of `daily` from ledger rows, and compares. Reads nothing itself. */
import { formatYuan } from '../amount.ts';
import { amountNames, countNames, addFigures, noFigures, type DailyFigures } from '../daily/daily-figures.ts';
import { dayOf, type DailyKey } from '../daily/daily-keys.ts';
import { dailySums, type DailySum } from '../daily/daily-sums.ts';
import type { LedgerRow } from '../ledger-row.ts';

/** An item whose figures are not those of the rows. `missing`: what has to be added to it. */
export interface DailyDifference {
  key: DailyKey;
  found: DailyFigures;
  missing: DailyFigures;
}

/** Sums of days, of rows that are added one after the other. Needs memory by day and model, not by row. */
export class DailyAudit {
  readonly #sums = new Map<string, DailySum>();
  readonly #isWanted: (key: DailyKey) => boolean;

  /** @param isWanted which of the items of days to recompute */
  constructor(isWanted: (key: DailyKey) => boolean) {
    this.#isWanted = isWanted;
  }

  add(row: LedgerRow): void {
    for (const { key, figures } of dailySums([row])) {
      if (dayOf(key) === undefined || !this.#isWanted(key)) continue;
      const name = nameOf(key);
      const before = this.#sums.get(name)?.figures ?? noFigures;
      this.#sums.set(name, { key, figures: addFigures(before, figures) });
    }
  }

  /** The ids of the items that should exist. */
  get ids(): string[] {
    return [...new Set([...this.#sums.values()].map(({ key }) => key.id))];
  }

  /** @param items those of one id; those of hours are ignored */
  differences(id: string, items: readonly DailySum[]): DailyDifference[] {
    const found = new Map(items.map((sum) => [nameOf(sum.key), sum]));
    const own = [...this.#sums].filter(([, { key }]) => key.id === id);
    const names = new Set([...found.keys(), ...own.map(([name]) => name)]);
    return [...names].flatMap((name) => {
      const [is, wanted] = [found.get(name), this.#sums.get(name)];
      const key = is?.key ?? wanted?.key;
      if (!key || dayOf(key) === undefined || !this.#isWanted(key)) return [];
      const missing = addFigures(wanted?.figures ?? noFigures, negative(is?.figures ?? noFigures));
      const isSame = Object.keys(missing.counts).length + Object.keys(missing.amounts).length === 0;
      return isSame ? [] : [{ key, found: is?.figures ?? noFigures, missing }];
    });
  }
}

const nameOf = ({ id, period }: DailyKey): string => `${id}\u0000${period}`;

const negative = ({ counts, amounts }: DailyFigures): DailyFigures => ({
  counts: Object.fromEntries(countNames.map((name) => [name, -(counts[name] ?? 0)])),
  amounts: Object.fromEntries(amountNames.map((name) => [name, -(amounts[name] ?? 0n)])),
});

/** One line: each figure that differs, as it is and as it should be. */
export function differenceWords({ key, found, missing }: DailyDifference): string {
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
