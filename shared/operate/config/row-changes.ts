/** What turns one configuration into another, row by row and attribute by attribute. */
import { keyAttributes, type ConfigRows } from '../../config/config-rows.ts';
import { plainRow } from '../../config/rows/read-row.ts';
import type { ConfigTable } from '../../config/validation-result.ts';
import type { RawRow } from '../row-tables.ts';
import { canonicalJson, compareCodeUnits } from '../../wire/canonical-json.ts';
import { nameOf } from './findings.ts';

/** `before` absent: the row is new; `after` absent: it is deleted. Both as JSON, without notes and marks. */
export interface RowChange {
  table: ConfigTable;
  key: string | number;
  before?: RawRow;
  after?: RawRow;
}

export interface AttributeChange {
  name: string;
  /** Absent: the row did not have the attribute. */
  before?: unknown;
  after?: unknown;
}

/** A change that may be shown. Of a row with a problem it has only the names of the attributes. */
export interface RowDifference {
  table: ConfigTable;
  key: string | number;
  change: 'added' | 'changed' | 'removed';
  attributes: AttributeChange[];
}

export const configTables = Object.keys(keyAttributes) as ConfigTable[];

/** In the order of tables and keys. */
export function changesBetween(before: ConfigRows, after: ConfigRows): RowChange[] {
  return configTables.flatMap((table) => {
    const [old, next] = [before, after].map((rows) => rowsByKey(table, rows[table]));
    const keys = [...new Set([...(old?.keys() ?? []), ...(next?.keys() ?? [])])].toSorted(compareCodeUnits);
    return keys.flatMap((key): RowChange[] => {
      const [oldRow, nextRow] = [old?.get(key), next?.get(key)];
      if (canonicalJson(oldRow) === canonicalJson(nextRow)) return [];
      return [{ table, key, ...(oldRow && { before: oldRow }), ...(nextRow && { after: nextRow }) }];
    });
  });
}

export function attributeChanges({ before = {}, after = {} }: RowChange): AttributeChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted();
  return names
    .map((name) => ({ name, before: before[name], after: after[name] }))
    .filter((change) => canonicalJson(change.before) !== canonicalJson(change.after));
}

/**
 * The changes as operators may see them.
 * @param bad the names of rows with a problem: a secret may have been typed into the wrong attribute of one
 */
export function differencesOf(changes: RowChange[], bad: ReadonlySet<string>): RowDifference[] {
  return changes.map((change) => {
    const { table, key, before, after } = change;
    const kind = before === undefined ? 'added' : after === undefined ? 'removed' : 'changed';
    const attributes = attributeChanges(change);
    const shown = bad.has(nameOf(change)) ? attributes.map(({ name }) => ({ name })) : attributes;
    return { table, key, change: kind, attributes: shown };
  });
}

/** Rows by their key, as JSON, without notes and marks. */
export function rowsByKey(table: ConfigTable, rows: unknown[]): Map<string | number, RawRow> {
  return new Map(
    rows.map((raw) => {
      const row = plainRow(raw) as RawRow;
      return [row[keyAttributes[table]] as string | number, row];
    }),
  );
}
