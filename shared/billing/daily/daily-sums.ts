import type { LedgerRow } from '../ledger-row.ts';
import { addFigures, figuresOf, noFigures, type DailyFigures } from './daily-figures.ts';
import { dailyKeys, type DailyKey } from './daily-keys.ts';

export interface DailySum {
  key: DailyKey;
  figures: DailyFigures;
}

/** What rows add to the items of `daily`, one sum an item. */
export function dailySums(rows: readonly LedgerRow[]): DailySum[] {
  const sums = new Map<string, DailySum>();
  for (const row of rows)
    for (const key of dailyKeys(row)) {
      const name = keyText(key);
      const { figures } = sums.get(name) ?? { figures: noFigures };
      sums.set(name, { key, figures: addFigures(figures, figuresOf(row)) });
    }
  return [...sums.values()];
}

/** Rows in groups that fit, with the items that count them, into transactions of so many writes. In order. */
export function inTransactions<Row extends LedgerRow>(rows: readonly Row[], writesMax: number): Row[][] {
  const groups: Row[][] = [];
  let group: Row[] = [];
  let keys = new Set<string>();
  for (const row of rows) {
    const own = [...dailyKeys(row).map(keyText), ...budgetOf(row)];
    const all = new Set([...keys, ...own]);
    const fits = group.length + 1 + all.size <= writesMax;
    if (!fits && group.length > 0) groups.push(group);
    group = fits ? [...group, row] : [row];
    keys = fits ? all : new Set(own);
  }
  return group.length > 0 ? [...groups, group] : groups;
}

/** The counter of the key's budget is one more write. */
const budgetOf = (row: LedgerRow): string[] =>
  row.kind === 'grant' || row.budget === undefined ? [] : [`${row.key} ${row.budget}`];

const keyText = ({ id, period }: DailyKey): string => `${id}\u0000${period}`;
