import { writeFile } from 'node:fs/promises';
import { keyAttributes } from '../../config/config-rows.ts';
import { canonicalJson, compareCodeUnits } from '../../wire/canonical-json.ts';
import { configTables, rowsByKey } from './row-changes.ts';
import { badRows, findingsIn, nameOf } from './findings.ts';
import { Failure } from '../operator-failure.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import type { RawRow } from '../row-tables.ts';
import { remark, say } from '../../../infra/ops/cli/terminal/terminal.ts';

export interface ExportOptions {
  skipBad?: boolean;
}

/** Writes the four tables as one JSON whose lines stay where they are when nothing changed. */
export async function exportConfig(session: Session, path: string, options: ExportOptions): Promise<void> {
  const tables = await session.config.tables();
  const findings = findingsIn(tables, session.target);
  const bad = badRows(findings);
  // What stands in the wrong attribute of a bad row may be a secret, and files go into repositories.
  for (const finding of findings)
    if (finding.problem !== undefined) remark(`problem: ${nameOf(finding)}: ${finding.problem}`);
  if (bad.size > 0 && !options.skipBad)
    throw new Failure('nothing was exported: mend these rows, or leave them out with --skip-bad');
  const content = Object.fromEntries(
    configTables.map((table) => [
      table,
      [...rowsByKey(table, tables[table])]
        .filter(([key]) => !bad.has(nameOf({ table, key })))
        .toSorted(([a], [b]) => compareCodeUnits(a, b))
        .map(([, row]) => keyFirst(keyAttributes[table], row)),
    ]),
  );
  const text = `${JSON.stringify(content, null, 2)}\n`;
  await writeFile(path, text).catch(() => {
    throw new Failure(`the file ${path} cannot be written`);
  });
  say(`${Object.values(content).flat().length} rows are in ${path}.`);
}

const keyFirst = (keyName: string, row: RawRow): RawRow => {
  const sorted = JSON.parse(canonicalJson(row)) as RawRow;
  return { [keyName]: row[keyName], ...sorted };
};
