import { validateAccountRow, validateKeyRow } from '../../config/compile/validate-row.ts';
import { GrantRow } from '../../config/rows/grant-row.ts';
import { emptyRows, type ConfigRows } from '../../config/config-rows.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { ValidationResult } from '../../config/validation-result.ts';
import { readRowsFile, type FileRows } from './rows-file.ts';
import { findingsIn, nameOf, type Finding } from './findings.ts';
import { configTables, rowsByKey } from './row-changes.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import { Progress } from '../../../infra/ops/cli/terminal/progress.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import type { RawRow } from '../row-tables.ts';
import { say, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';

export interface CheckOptions {
  file?: string;
  alone?: boolean;
}

interface Checked {
  rows: number;
  findings: Finding[];
}

const checkedTables = [...configTables, 'keys', 'accounts', 'grants'] as const;

/** Says what is wrong with the rows that operators edit. Throws a Failure when a row is not used. */
export async function checkRows(session: Session, { file, alone }: CheckOptions): Promise<void> {
  if (alone && file === undefined) throw usageFailure('--alone goes with --file');
  const checked =
    file === undefined ? await checkTables(session) : await checkFile(session, file, alone === true);
  report(session, checked);
}

async function checkTables({ config, tables, ledger, target }: Session): Promise<Checked> {
  const newest = await config.newest();
  const earlier = newest && (await config.rows(newest));
  const rows = await config.tables();
  const findings = findingsIn(rows, target, earlier);
  const progress = new Progress('rows of customers read');
  const [keys, accounts] = await Promise.all([tables.scan('keys'), tables.scan('accounts')]);
  progress.add(keys.length + accounts.length);
  findings.push(...validated('keys', keys), ...validated('accounts', accounts));
  let grants = 0;
  for await (const page of ledger.grants()) {
    // Grants are validated when they are applied, and carry what was found.
    for (const { account, grantId, problem } of page)
      if (problem !== undefined) findings.push({ table: 'grants', key: `${account} ${grantId}`, problem });
    grants += page.length;
    progress.add(page.length);
  }
  return { rows: count(rows) + keys.length + accounts.length + grants, findings };
}

/** The rows of a file, over those of the tables or alone. */
async function checkFile({ config, target }: Session, path: string, alone: boolean): Promise<Checked> {
  const file = await readRowsFile(path, checkedTables);
  const rows = putOver(alone ? emptyRows : await config.tables(), file);
  const others = [file.keys ?? [], file.accounts ?? [], file.grants ?? []].flat().length;
  const findings = [
    ...findingsIn(rows, target),
    ...validated('keys', file.keys ?? []),
    ...validated('accounts', file.accounts ?? []),
    ...validated('grants', file.grants ?? []),
  ];
  return { rows: count(rows) + others, findings };
}

/** The rows as they will be once those of the file are written. */
export function putOver(rows: ConfigRows, file: FileRows<keyof ConfigRows>): ConfigRows {
  const result = { ...rows };
  for (const table of configTables) {
    const written = file[table];
    if (written === undefined) continue;
    const kept = [...rowsByKey(table, rows[table])];
    result[table] = [...new Map([...kept, ...rowsByKey(table, written)]).values()];
  }
  return result;
}

const validators: Record<'keys' | 'accounts' | 'grants', (raw: unknown) => ValidationResult> = {
  keys: validateKeyRow,
  accounts: validateAccountRow,
  grants(raw) {
    const reading = readRow(GrantRow, raw);
    return 'problem' in reading ? { problem: reading.problem } : {};
  },
};

const validated = (table: keyof typeof validators, rows: RawRow[]): Finding[] =>
  rows.flatMap((row) => {
    const result = validators[table](row);
    if (result.problem === undefined && result.warning === undefined) return [];
    const key = keyNames[table].map((name) => String(row[name])).join(' ');
    return [{ table, key, ...result }];
  });

const keyNames = { keys: ['hash'], accounts: ['account'], grants: ['account', 'grant_id'] };

const count = (rows: ConfigRows): number => Object.values(rows).flat().length;

function report(session: Session, { rows, findings }: Checked): void {
  const problems = findings.filter(({ problem }) => problem !== undefined);
  const warnings = findings.filter(({ warning }) => warning !== undefined);
  if (session.json) sayJson({ rows, problems, warnings });
  else {
    for (const finding of problems) say(`problem  ${nameOf(finding)}: ${finding.problem}`);
    for (const finding of warnings) say(`warning  ${nameOf(finding)}: ${finding.warning}`);
  }
  const summary = `${rows} rows, ${problems.length} with a problem, ${warnings.length} with a warning`;
  if (problems.length > 0) throw new Failure(summary);
  if (!session.json) say(`${summary}.`);
}
