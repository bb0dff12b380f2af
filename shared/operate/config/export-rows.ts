/**
 * Exports the four configuration tables as one JSON text for version control, without rows that have a
 * problem.
 */
import { keyAttributes } from '../../config/config-rows.ts';
import { canonicalJson, compareCodeUnits } from '../../wire/canonical-json.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';
import { badRows, findingsIn, nameOf, problemsOf, type Finding } from './findings.ts';
import { configTables, rowsByKey } from './row-changes.ts';

export interface ExportedRows {
  /** Rows and their attributes are sorted, so that the lines of an unchanged row do not move. */
  text: string;
  /** Number of rows in the text. */
  rows: number;
  /** The rows that are left out. One of them may have a secret in a wrong attribute. */
  problems: Finding[];
}

export async function exportRows(
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'target'>,
): Promise<ExportedRows> {
  const tables = await ports.config.tables();
  const findings = findingsIn(tables, ports);
  const bad = badRows(findings);
  const content = Object.fromEntries(
    configTables.map((table) => [
      table,
      [...rowsByKey(table, tables[table])]
        .filter(([key]) => !bad.has(nameOf({ table, key })))
        .toSorted(([a], [b]) => compareCodeUnits(a, b))
        .map(([, row]) => keyFirst(keyAttributes[table], row)),
    ]),
  );
  return {
    text: `${JSON.stringify(content, null, 2)}\n`,
    rows: Object.values(content).flat().length,
    problems: problemsOf(findings),
  };
}

const keyFirst = (keyName: string, row: RawRow): RawRow => ({
  [keyName]: row[keyName],
  ...(JSON.parse(canonicalJson(row)) as RawRow),
});
