/** Validates the rows that operators edit, from the tables or from a file. Writes nothing. */
import { validateAccountRow, validateKeyRow } from '../../config/compile/validate-row.ts';
import { GrantRow } from '../../config/rows/grant-row.ts';
import { emptyRows, type ConfigRows } from '../../config/config-rows.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { ValidationResult } from '../../config/validation-result.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';
import { findingsIn, problemsOf, warningsOf, type Finding } from './findings.ts';
import { configTables } from './row-changes.ts';
import { putOver, readRowsFile, type RowsFile } from './rows-file.ts';

export interface CheckedRows {
  /** Number of rows read. */
  rows: number;
  problems: Finding[];
  warnings: Finding[];
}

const checkedTables = [...configTables, 'keys', 'accounts', 'grants'] as const;

/** @param onProgress called with the number of further rows read of `keys`, `accounts`, `grants` */
export async function checkTables(
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'tables' | 'ledger' | 'target'>,
  onProgress: (count: number) => void,
): Promise<CheckedRows> {
  const { config, tables, ledger } = ports;
  const newest = await config.newest();
  const earlier = newest && (await config.rows(newest));
  const rows = await config.tables();
  const [keys, accounts] = await Promise.all([tables.scan('keys'), tables.scan('accounts')]);
  onProgress(keys.length + accounts.length);
  const findings = [
    ...findingsIn(rows, ports, earlier),
    ...validated('keys', keys, ports.target),
    ...validated('accounts', accounts, ports.target),
  ];
  let grants = 0;
  for await (const page of ledger.grants()) {
    // The grant applier validates grants and stores problems in their rows.
    for (const { account, grantId, problem } of page)
      if (problem !== undefined) findings.push({ table: 'grants', key: `${account} ${grantId}`, problem });
    grants += page.length;
    onProgress(page.length);
  }
  return checked(count(rows) + keys.length + accounts.length + grants, findings);
}

/** @param alone checks only the file's rows; otherwise they override rows of the tables */
export async function checkFile(
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'target'>,
  file: RowsFile,
  { alone }: { alone: boolean },
): Promise<CheckedRows> {
  const { keys = [], accounts = [], grants = [], ...written } = readRowsFile(file, checkedTables);
  const rows = putOver(alone ? emptyRows : await ports.config.tables(), written);
  const findings = [
    ...findingsIn(rows, ports),
    ...validated('keys', keys, ports.target),
    ...validated('accounts', accounts, ports.target),
    ...validated('grants', grants, ports.target),
  ];
  return checked(count(rows) + keys.length + accounts.length + grants.length, findings);
}

const checked = (rows: number, findings: Finding[]): CheckedRows => ({
  rows,
  problems: problemsOf(findings),
  warnings: warningsOf(findings),
});

const validators: Record<
  'keys' | 'accounts' | 'grants',
  (raw: unknown, rules: { local: boolean }) => ValidationResult
> = {
  keys: validateKeyRow,
  accounts: validateAccountRow,
  grants: (raw) => readRow(GrantRow, raw),
};

const keyNames = { keys: ['hash'], accounts: ['account'], grants: ['account', 'grant_id'] };

const validated = (table: keyof typeof validators, rows: RawRow[], rules: { local: boolean }): Finding[] =>
  rows.flatMap((row) => {
    const { problem, warning }: ValidationResult = validators[table](row, rules);
    if (problem === undefined && warning === undefined) return [];
    const key = keyNames[table].map((name) => String(row[name])).join(' ');
    return [{ table, key, problem, warning }];
  });

const count = (rows: ConfigRows): number => Object.values(rows).flat().length;
