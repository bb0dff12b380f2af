import { compareCodeUnits } from '../../wire/json.ts';
import { attributeOf, plainRow, type RowProblem, type RowReading } from './read-row.ts';

export interface TableReader<Row> {
  table: ConfigTable;
  read(raw: unknown): RowReading<Row>;
  /** The replacement of a bad row. Absent or undefined: the last good version of the row. */
  findReplacement?(bad: { problem: RowProblem; raw: unknown; lastGood: unknown }): Replacement | undefined;
}

export interface Replacement {
  /** A row that is read like any other; undefined: nothing replaces the bad row. */
  raw: unknown;
  /** Appended to the row's problem when the replacement is used. */
  notice?: string;
}

interface TableReading<Row> {
  /** The rows that are used, sorted by key. */
  rows: Row[];
  /** The raw form of `rows`, as JSON. */
  plainRows: unknown[];
  /** One for each input row, in the same order. */
  results: RowResult[];
}

export const lastGoodNotice = 'until it is fixed, the last valid version stays in use';

/**
 * Reads all rows of a table. A bad row is replaced by its last good version if the current rules accept that
 * version. A deleted row is not replaced.
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
      return { table, key, ...(reading.warning !== undefined && { warning: reading.warning }) };
    }
    const lastGood = lastGoodRows.get(key);
    const standIn = reader.findReplacement?.({ problem: reading, raw, lastGood }) ?? {
      raw: lastGood,
      notice: lastGoodNotice,
    };
    const instead = standIn.raw === undefined ? undefined : reader.read(standIn.raw);
    if (!instead || 'problem' in instead) return { table, key, problem: reading.problem };
    used.push({ key, row: instead.row, plain: plainRow(standIn.raw) });
    return { table, key, problem: [reading.problem, standIn.notice ?? []].flat().join('; ') };
  });
  const sorted = used.toSorted((a, b) => compareCodeUnits(a.key, b.key));
  return { rows: sorted.map(({ row }) => row), plainRows: sorted.map(({ plain }) => plain), results };
}

/** The key as stored in the table, so that the result can be written to that row. */
function keyOf(table: ConfigTable, raw: unknown): string | number {
  const key = attributeOf(raw, keyAttributes[table]);
  return typeof key === 'string' || typeof key === 'number' ? key : '';
}

/** All rows of the four tables, as the SDK's document client returns them or as a snapshot stores them. */
export type ConfigRows = Record<ConfigTable, unknown[]>;

export const emptyRows: ConfigRows = { channels: [], charges: [], plans: [], settings: [] };

export const keyAttributes: Record<ConfigTable, string> = {
  channels: 'id',
  charges: 'id',
  plans: 'level',
  settings: 'name',
};

/** The result of validating a row. The publisher writes it to the row as `_problem` and `_warning`. */
export interface ValidationResult {
  /** Why this version of the row is not used. */
  problem?: string;
  /** What may be wrong in a row that is used. */
  warning?: string;
}

export type ConfigTable = 'channels' | 'charges' | 'plans' | 'settings';

export interface RowResult extends ValidationResult {
  table: ConfigTable;
  /** The row's key as stored in the table. */
  key: string | number;
}

/** The first few of many names, for a sentence. */
export function joinNames(names: readonly string[], max = 5): string {
  const shown = names.slice(0, max).join(', ');
  return names.length > max ? `${shown} and ${names.length - max} more` : shown;
}
