/** Who made a version of the configuration, by the marks `_by` and `_at` of the rows that changed. */
import { canonicalJson, compareCodeUnits } from '../../wire/canonical-json.ts';
import { keyAttributes, type ConfigRows } from '../config-rows.ts';
import { attributeOf, plainRow } from '../rows/read-row.ts';
import type { ConfigTable } from '../validation-result.ts';

export interface EditedRows {
  /** With their marks. */
  raw: ConfigRows;
  /** As the version before has them. Undefined: there is none. */
  before: ConfigRows | undefined;
  after: ConfigRows;
}

/**
 * An edit by other tools leaves the marks of an earlier one, so those from before the earlier version do not count; clocks
 * may differ by so much. Rows that were removed say nothing.
 */
const skewSeconds = 60;

/** @param sinceSeconds when the version before was published, in Unix seconds */
export function authorsOf({ raw, before, after }: EditedRows, sinceSeconds: number): string[] {
  const authors = (Object.keys(keyAttributes) as ConfigTable[]).flatMap((table) => {
    const name = keyAttributes[table];
    const earlier = new Set(before?.[table].map((row) => canonicalJson(plainRow(row))));
    const changed = after[table].filter((row) => !earlier.has(canonicalJson(plainRow(row))));
    const keys = new Set(changed.map((row) => attributeOf(row, name)));
    return raw[table]
      .filter((row) => keys.has(attributeOf(row, name)))
      .flatMap((row) => authorOf(row, sinceSeconds));
  });
  return [...new Set(authors)].toSorted(compareCodeUnits);
}

function authorOf(row: unknown, sinceSeconds: number): string[] {
  const [by, at] = [attributeOf(row, '_by'), attributeOf(row, '_at')];
  if (typeof by !== 'string' || typeof at !== 'string') return [];
  return Date.parse(at) / 1000 >= sinceSeconds - skewSeconds ? [by] : [];
}
