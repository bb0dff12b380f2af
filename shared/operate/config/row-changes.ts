/** Computes the differences between two configurations, by row and attribute. */
import { keyAttributes, type ConfigRows } from '../../config/config-rows.ts';
import { plainRow } from '../../config/rows/read-row.ts';
import type { ConfigTable } from '../../config/validation-result.ts';
import type { RawRow } from '../row-tables.ts';
import { canonicalJson, compareCodeUnits } from '../../wire/canonical-json.ts';
import { nameOf } from './findings.ts';
import { mayBeShown } from './shown-attributes.ts';

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

/** A change in a form that is safe to show: in a row with a problem, without values that may be secrets. */
export interface RowDifference {
  table: ConfigTable;
  key: string | number;
  change: 'added' | 'changed' | 'removed';
  attributes: AttributeChange[];
}

export const configTables = Object.keys(keyAttributes) as ConfigTable[];

/** Sorted by table in the order of `configTables`, then by key. */
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
 * Converts changes to a form that is safe to show.
 * @param bad names of rows with a problem; one of these may have a secret in a wrong attribute
 */
export function differencesOf(changes: RowChange[], bad: ReadonlySet<string>): RowDifference[] {
  return changes.map((change) => {
    const { table, key, before, after } = change;
    const kind = before === undefined ? 'added' : after === undefined ? 'removed' : 'changed';
    const attributes = attributeChanges(change);
    const shown = attributes.map(({ name, ...values }) =>
      Object.values(values).every((value) => mayBeShown(name, value)) ? { name, ...values } : { name },
    );
    return { table, key, change: kind, attributes: bad.has(nameOf(change)) ? shown : attributes };
  });
}

/** Rows by key. The rows are JSON, without notes and marks. */
export function rowsByKey(table: ConfigTable, rows: unknown[]): Map<string | number, RawRow> {
  return new Map(
    rows.map((raw) => {
      const row = plainRow(raw) as RawRow;
      return [row[keyAttributes[table]] as string | number, row];
    }),
  );
}
