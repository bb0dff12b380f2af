/** What makes one configuration of another, row by row and attribute by attribute. */
import { canonicalJson, compareCodeUnits } from '../../wire/canonical-json.ts';
import { keyAttributes, type ConfigRows } from '../../config/config-rows.ts';
import { plainRow } from '../../config/rows/read-row.ts';
import type { ConfigTable } from '../../config/validation-result.ts';
import type { RawRow } from '../row-tables.ts';

/** `before` absent: the row is new; `after` absent: it goes. Both as JSON, without notes and marks. */
export interface RowChange {
  table: ConfigTable;
  key: string | number;
  before?: RawRow;
  after?: RawRow;
}

export interface AttributeChange {
  name: string;
  /** undefined: the attribute is absent. */
  before: unknown;
  after: unknown;
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

/** Rows by their key, as JSON, without notes and marks. */
export function rowsByKey(table: ConfigTable, rows: unknown[]): Map<string | number, RawRow> {
  return new Map(
    rows.map((raw) => {
      const row = plainRow(raw) as RawRow;
      return [row[keyAttributes[table]] as string | number, row];
    }),
  );
}
