/** Reads a table with one reader for its rows, and replaces invalid rows by their last valid version. */
import { compareCodeUnits } from '../../wire/json.ts';
import { attributeOf, findPaddedNames, plainRow, type RowProblem, type RowReading } from './read-row.ts';

export interface TableReader<Row> {
  table: ConfigTable;
  read(raw: unknown): RowReading<Row>;
  /** Otherwise the last valid version replaces an invalid row. */
  findReplacement?(bad: { problem: RowProblem; raw: unknown; lastGood: unknown }): Replacement | undefined;
}

export interface Replacement {
  /** Read like any other row. If undefined, nothing replaces the invalid row. */
  raw: unknown;
  /** Appended to the row's problem. */
  notice?: string;
}

interface TableReading<Row> {
  /** The rows that are used, sorted by key. */
  rows: Row[];
  plainRows: unknown[];
  /** One for each input row, in the same order. */
  results: RowResult[];
}

export const lastGoodNotice = 'until it is fixed, the last valid version stays in use';

/**
 * The current rules must accept the last valid version too. A deleted row is not replaced.
 * @param earlier the rows of the newest snapshot
 */
export function readTable<Row>(
  reader: TableReader<Row>,
  rawRows: unknown[],
  earlier: unknown[],
): TableReading<Row> {
  const { table } = reader;
  const lastGoodRows = new Map(earlier.map((raw) => [keyOf(table, raw), raw]));
  const used: { key: string | number; row: Row; plain: unknown }[] = [];
  const results = rawRows.map((raw): RowResult => {
    const key = keyOf(table, raw);
    const reading = reader.read(raw);
    if (!('problem' in reading)) {
      used.push({ key, row: reading.row, plain: plainRow(raw) });
      return { table, key, ...warnOf([reading.warning ?? [], findPaddedNames(raw)].flat()) };
    }
    const lastGood = lastGoodRows.get(key);
    const replacement = reader.findReplacement?.({ problem: reading, raw, lastGood }) ?? {
      raw: lastGood,
      notice: lastGoodNotice,
    };
    const instead = replacement.raw === undefined ? undefined : reader.read(replacement.raw);
    if (!instead || 'problem' in instead) return { table, key, problem: reading.problem };
    used.push({ key, row: instead.row, plain: plainRow(replacement.raw) });
    return { table, key, problem: [reading.problem, replacement.notice ?? []].flat().join('; ') };
  });
  const sorted = used.toSorted((a, b) => compareCodeUnits(a.key, b.key));
  return { rows: sorted.map(({ row }) => row), plainRows: sorted.map(({ plain }) => plain), results };
}

function keyOf(table: ConfigTable, raw: unknown): string | number {
  const key = attributeOf(raw, keyAttributes[table]);
  return typeof key === 'string' || typeof key === 'number' ? key : '';
}

/** Rows as the SDK's document client returns them, or as a snapshot stores them. */
export type ConfigRows = Record<ConfigTable, unknown[]>;

export const emptyRows: ConfigRows = { channels: [], charges: [], plans: [], settings: [] };

export const keyAttributes: Record<ConfigTable, string> = {
  channels: 'id',
  charges: 'id',
  plans: 'level',
  settings: 'name',
};

/** The publisher writes these to the row as `_problem` and `_warning`. */
export interface ValidationResult {
  /** Why this version of the row is not used. */
  problem?: string;
  warning?: string;
}

export const warnOf = (warnings: readonly string[]): ValidationResult =>
  warnings.length > 0 ? { warning: warnings.join('; ') } : {};

export type ConfigTable = 'channels' | 'charges' | 'plans' | 'settings';

export interface RowResult extends ValidationResult {
  table: ConfigTable;
  key: string | number;
}

/** Names the first few of many. */
export function joinNames(names: readonly string[], max = 5): string {
  const shown = names.slice(0, max).join(', ');
  return names.length > max ? `${shown} and ${names.length - max} more` : shown;
}
