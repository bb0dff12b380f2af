import type { LedgerRow } from '../ledger-row.ts';
import { addFigures, figuresOf, isNothing, noFigures, type DailyFigures } from './daily-figures.ts';
import type { DailyKey } from './daily-key.ts';
import { dailyKeys } from './daily-keys.ts';
import { figuresIn } from './kept-figures.ts';

export interface DailySum {
  key: DailyKey;
  figures: DailyFigures;
}

/** What rows add to the items of `daily`, one sum an item. */
export const dailySums = (rows: readonly LedgerRow[]): DailySum[] => sumsBy(rows, dailyKeys);

/** What rows add to the items that `keysOf` names. Items to which they add nothing are left out. */
export function sumsBy<Row extends LedgerRow>(
  rows: readonly Row[],
  keysOf: (row: Row) => DailyKey[],
): DailySum[] {
  const sums = new Map<string, DailySum>();
  for (const row of rows) {
    const own = figuresOf(row);
    for (const key of keysOf(row)) {
      const name = keyText(key);
      const { figures } = sums.get(name) ?? { figures: noFigures };
      sums.set(name, { key, figures: addFigures(figures, figuresIn(key, own)) });
    }
  }
  return [...sums.values()].filter(({ figures }) => !isNothing(figures));
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
