import { compileSnapshot } from '../../config/compile/compile-snapshot.ts';
import type { ConfigRows } from '../../config/config-rows.ts';
import { putOver } from './check-rows.ts';
import { changesBetween, configTables, rowsByKey, type RowChange } from './row-changes.ts';
import { readRowsFile } from './rows-file.ts';
import { badRows, findingsIn, nameOf } from './findings.ts';
import { countWords, sayChanges } from '../../../infra/ops/cli/print/config.ts';
import { awaitPublished, writeChanges } from './write-rows.ts';
import { Failure } from '../operator-failure.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { confirm, remark, say } from '../../../infra/ops/cli/terminal/terminal.ts';

interface WriteOptions {
  dryRun?: boolean;
  yes?: boolean;
  /** Seconds. */
  wait: number;
}

export interface ApplyOptions extends WriteOptions {
  prune?: boolean;
}

/** Makes the tables hold the rows of a file: shows the difference, checks it, asks, writes only that. */
export async function applyFile(session: Session, path: string, options: ApplyOptions): Promise<void> {
  const file = await readRowsFile(path, configTables);
  const tables = await session.config.tables();
  const wanted = putOver(tables, file);
  if (options.prune)
    for (const table of configTables) {
      const rows = file[table];
      if (rows) wanted[table] = rows;
    }
  await writeWanted(session, { tables, wanted, options });
}

/** Writes the rows of an earlier snapshot back, and deletes rows that were not in it. */
export async function rollBack(session: Session, version: number, options: WriteOptions): Promise<void> {
  const { config, target } = session;
  const [pointer, newest] = await Promise.all([config.version(version), config.newest()]);
  const wanted = { ...(await config.rows(pointer)) };
  const tables = await config.tables();
  const earlier = newest && (await config.rows(newest));
  const { rows: used } = compileSnapshot(tables, {
    local: target.local,
    publishedAt: 0,
    ...(earlier && { earlier }),
  });
  // A row that was never served holds nothing to roll back, but perhaps somebody's unfinished work.
  for (const table of configTables) {
    const served = rowsByKey(table, used[table]);
    const known = rowsByKey(table, wanted[table]);
    const unused = [...rowsByKey(table, tables[table])].filter(
      ([key]) => !served.has(key) && !known.has(key),
    );
    wanted[table] = [...wanted[table], ...unused.map(([, row]) => row)];
  }
  await writeWanted(session, { tables, wanted, options });
}

interface Writing {
  tables: ConfigRows;
  wanted: ConfigRows;
  options: WriteOptions;
}

async function writeWanted(session: Session, { tables, wanted, options }: Writing): Promise<void> {
  const changes = changesBetween(tables, wanted);
  sayChanges(changes, badRows(findingsIn(wanted, session.target)));
  checkWanted(session, wanted, changes);
  if (changes.length === 0) return say('nothing to write: the tables hold this already.');
  say(`${countWords(changes)}.`);
  if (options.dryRun) return say('nothing was written: --dry-run');
  await confirm('Write this?', options);
  await writeChanges(session, changes, tables);
  say(`${changes.length} rows are written.`);
  await awaitPublished(session, options.wait);
}

/** Rows that are not touched may have their problems: they are no reason to keep others from being written. */
function checkWanted({ target }: Session, wanted: ConfigRows, changes: RowChange[]): void {
  const written = new Set(changes.filter(({ after }) => after).map(nameOf));
  const findings = findingsIn(wanted, target);
  for (const finding of findings)
    if (finding.warning !== undefined) remark(`warning: ${nameOf(finding)}: ${finding.warning}`);
  const problems = findings.filter(({ problem }) => problem !== undefined);
  for (const finding of problems) {
    const note = written.has(nameOf(finding)) ? '' : ' (in the tables already)';
    remark(`problem: ${nameOf(finding)}: ${finding.problem}${note}`);
  }
  const refused = problems.filter((finding) => written.has(nameOf(finding)));
  if (refused.length > 0)
    throw new Failure(`nothing was written: ${refused.length} of these rows have a problem`);
}
