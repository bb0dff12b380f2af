/**
 * Plans the writes that put the rows of a file, or of an earlier version, into the configuration tables.
 * Writes only differences, and nothing if a row to write has a problem.
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
  /** The differences in a form that is safe to show. */
  differences: RowDifference[];
  /** About all rows of the planned configuration. */
  warnings: string[];
  /** Problems of rows that are not `written` exist in the tables already and do not prevent the writes. */
  problems: { finding: Finding; written: boolean }[];
  /** All rows as they are, and as they would be. */
  edit: { before: ConfigRows; after: ConfigRows };
}

type ConfigPorts = Pick<OperatorPorts, 'clock' | 'config' | 'target'>;

/** @param prune deletes rows that the file lacks, in the tables that the file names */
export async function planApply(
  ports: ConfigPorts,
  file: RowsFile,
  { prune }: { prune?: boolean },
): Promise<ConfigPlan> {
  const rows = readRowsFile(file, configTables);
  const tables = await ports.config.tables();
  return planOf(tables, prune ? { ...tables, ...rows } : putOver(tables, rows), ports);
}

/** Plans to restore the rows of an earlier version and to delete served rows that it lacks. */
export async function planRollback(ports: ConfigPorts, version: number): Promise<ConfigPlan> {
  const { config, target } = ports;
  const [goal, newest] = await Promise.all([config.version(version), config.newest()]);
  const wanted = { ...(await config.rows(goal)) };
  const tables = await config.tables();
  const earlier = newest && (await config.rows(newest));
  const { rows: used } = compileSnapshot(tables, {
    local: target.local,
    publishedAt: 0,
    ...(earlier && { earlier }),
  });
  // Keep rows that are neither served nor in that version: they may be unfinished work.
  for (const table of configTables) {
    const served = rowsByKey(table, used[table]);
    const known = rowsByKey(table, wanted[table]);
    const unused = [...rowsByKey(table, tables[table])].filter(
      ([key]) => !served.has(key) && !known.has(key),
    );
    wanted[table] = [...wanted[table], ...unused.map(([, row]) => row)];
  }
  const plan = planOf(tables, wanted, ports);
  if (goal.version !== newest?.version) return plan;
  const isSame = plan.changes.length === 0;
  const said = isSame
    ? 'nothing to write'
    : 'what the tables hold beside it is not served, and would be undone';
  return {
    ...plan,
    effect: [`version ${version} serves already: ${said}.`, ...(isSame ? [] : plan.effect)],
  };
}

function planOf(tables: ConfigRows, wanted: ConfigRows, ports: ConfigPorts): ConfigPlan {
  const changes = changesBetween(tables, wanted);
  const findings = findingsIn(wanted, ports, { pricesBefore: tables.charges });
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
    differences: differencesOf(changes, badRows([...findings, ...findingsIn(tables, ports)])),
    warnings: warningsOf(findings).map((finding) => `${nameOf(finding)}: ${finding.warning}`),
    problems,
    edit: { before: tables, after: wanted },
  };
}
