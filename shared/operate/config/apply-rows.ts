/**
 * Makes the configuration tables hold wanted rows: those of a file, or those of an earlier version. Writes only what
 * differs, and nothing when a row that would be written has a problem.
 */
import { compileSnapshot } from '../../config/compile/compile-snapshot.ts';
import type { ConfigRows } from '../../config/config-rows.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RowWrite } from '../row-tables.ts';
import { badRows, findingsIn, nameOf, problemsOf, warningsOf, type Finding } from './findings.ts';
import { changesBetween, configTables, differencesOf, rowsByKey, type RowDifference } from './row-changes.ts';
import { putOver, readRowsFile, type RowsFile } from './rows-file.ts';
import { writesOf } from './write-rows.ts';

export interface ConfigPlan extends Plan<RowWrite> {
  /** What the writes change, as operators may see it. */
  differences: RowDifference[];
  /** Of all rows as they will be. */
  warnings: Finding[];
  /** Those of rows that are not `written` are in the tables already, and are no reason to refuse. */
  problems: { finding: Finding; written: boolean }[];
}

type ConfigPorts = Pick<OperatorPorts, 'config' | 'target'>;

/** @param prune rows are deleted that the file does not have, of the tables that it names */
export async function planApply(
  { config, target }: ConfigPorts,
  file: RowsFile,
  { prune }: { prune?: boolean },
): Promise<ConfigPlan> {
  const rows = readRowsFile(file, configTables);
  const tables = await config.tables();
  return planOf(tables, prune ? { ...tables, ...rows } : putOver(tables, rows), target);
}

/** Writes the rows of an earlier version back, and deletes rows that were not in it. */
export async function planRollback({ config, target }: ConfigPorts, version: number): Promise<ConfigPlan> {
  const [goal, newest] = await Promise.all([config.version(version), config.newest()]);
  const wanted = { ...(await config.rows(goal)) };
  const tables = await config.tables();
  const earlier = newest && (await config.rows(newest));
  const { rows: used } = compileSnapshot(tables, {
    local: target.local,
    publishedAt: 0,
    ...(earlier && { earlier }),
  });
  // A row that was never served has no earlier version, and may be somebody's unfinished work: it stays.
  for (const table of configTables) {
    const served = rowsByKey(table, used[table]);
    const known = rowsByKey(table, wanted[table]);
    const unused = [...rowsByKey(table, tables[table])].filter(
      ([key]) => !served.has(key) && !known.has(key),
    );
    wanted[table] = [...wanted[table], ...unused.map(([, row]) => row)];
  }
  return planOf(tables, wanted, target);
}

function planOf(tables: ConfigRows, wanted: ConfigRows, target: OperatorPorts['target']): ConfigPlan {
  const changes = changesBetween(tables, wanted);
  const findings = findingsIn(wanted, target);
  const written = new Set(changes.filter(({ after }) => after).map(nameOf));
  const problems = problemsOf(findings).map((finding) => ({
    finding,
    written: written.has(nameOf(finding)),
  }));
  const refused = problems.filter((each) => each.written).length;
  const removed = changes.length - written.size;
  const counts = `${written.size} rows to write${removed > 0 ? `, ${removed} to delete` : ''}.`;
  return {
    changes: writesOf(changes, tables),
    effect: [changes.length > 0 ? counts : 'nothing to write: the tables hold this already.'],
    questions: changes.length > 0 ? ['Write this?'] : [],
    ...(refused > 0 && { refusal: `nothing was written: ${refused} of these rows have a problem` }),
    differences: differencesOf(changes, badRows(findings)),
    warnings: warningsOf(findings),
    problems,
  };
}
