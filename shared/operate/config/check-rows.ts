/** Views of the rows that operators edit: checked, compared between versions and tables, and exported. Writes nothing. */
import { GrantRow } from '../../config/rows/grant-row.ts';
import { findKeyWarnings, listOfferedNames, maskHash, type KeyContext } from '../../config/rows/key-row.ts';
import { readRow, textOf } from '../../config/rows/read-row.ts';
import {
  emptyRows,
  keyAttributes,
  type ConfigRows,
  type ValidationResult,
} from '../../config/rows/read-table.ts';
import { validateAccountRow } from '../../config/rows/alerted-account.ts';
import { validateKeyRow } from '../../config/rows/key-row.ts';
import { findAccountWarnings } from '../../config/loss-warnings.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { canonicalJson, compareCodeUnits } from '../../wire/json.ts';
import type { OperatorPorts, RawRow } from '../operator-ports.ts';
import {
  listBadRows,
  changesBetween,
  compileRows,
  configTables,
  differencesOf,
  findProblems,
  findProblemsInTables,
  keysOf,
  nameOf,
  problemsOf,
  putOver,
  readRowsFile,
  indexRows,
  readServedRows,
  warningsOf,
  type Finding,
  type RowsFile,
} from './row-changes.ts';

const checkedTables = [...configTables, 'keys', 'accounts', 'grants'] as const;

export async function checkTables(ports: OperatorPorts) {
  const { config, tables, ledger } = ports;
  const earlier = await readServedRows(ports);
  const rows = await config.tables();
  const [keys, accounts] = await Promise.all([tables.scan('keys'), tables.scan('accounts')]);
  const { snapshot } = compileRows(ports, rows, { earlier });
  const beside = { offered: listOfferedNames(snapshot), accounts: accountsOf(accounts) };
  const findings = [
    ...findProblemsInTables(rows, ports, { earlier }),
    ...validateRows('keys', keys, { ...ports.target, beside }),
    ...validateRows('accounts', accounts, { ...ports.target, config: snapshot }),
  ];
  const keyless = new Set<string>();
  const withKeys = accountsOf(keys);
  let grants = 0;
  for await (const page of ledger.grants()) {
    // The grant applier validates grants and stores problems in their rows.
    for (const { account, grantId, problem } of page) {
      const warning = beside.accounts.has(account) ? undefined : noRow;
      if (problem ?? warning)
        findings.push({ table: 'grants', key: `${account} ${grantId}`, problem, warning });
      if (!withKeys.has(account)) keyless.add(account);
    }
    grants += page.length;
  }
  for (const account of keyless) findings.push({ table: 'grants', key: account, warning: noKeys });
  return summarizeFindings(count(rows) + keys.length + accounts.length + grants, findings);
}

const noRow = 'account: has no row in accounts, so its balance has no customer';
const noKeys = 'this account has grants but no key to spend them';

const accountsOf = (rows: RawRow[]): ReadonlySet<string> =>
  new Set(rows.map((row) => textOf(row, 'account')));

/** @param alone checks only the file's rows; otherwise they override rows of the tables */
export async function checkFile(ports: OperatorPorts, file: RowsFile, { alone }: { alone: boolean }) {
  const { keys = [], accounts = [], grants = [], ...written } = readRowsFile(file, checkedTables);
  const tables = alone ? emptyRows : await ports.config.tables();
  const rows = putOver(tables, written);
  const findings = [
    ...findProblems(rows, ports, { pricesBefore: tables.charges }),
    ...validateRows('keys', keys, ports.target),
    ...validateRows('accounts', accounts, {
      ...ports.target,
      ...(!alone && { config: compileRows(ports, rows).snapshot }),
    }),
    ...validateRows('grants', grants, ports.target),
  ];
  return summarizeFindings(count(rows) + keys.length + accounts.length + grants.length, findings);
}

const summarizeFindings = (rows: number, findings: Finding[]) => ({
  rows,
  problems: problemsOf(findings),
  warnings: warningsOf(findings),
});

const rowChecks = {
  keys: validateKeyRow,
  accounts: validateAccountRow,
  grants: (raw: unknown): ValidationResult => readRow(GrantRow, raw),
};

/** @param beside the rows that warnings about keys need; warnings about accounts need `config` */
const validateRows = (
  table: keyof typeof rowChecks,
  rows: RawRow[],
  { beside, config, ...rules }: { local: boolean; beside?: KeyContext; config?: Snapshot },
): Finding[] =>
  rows.flatMap((row) => {
    const { problem, warning } = rowChecks[table](row, rules);
    const doubts = [
      ...(beside ? findKeyWarnings(row, beside) : []),
      ...(config ? findAccountWarnings(row, config) : []),
    ];
    const warnings = [warning ?? [], problem === undefined ? doubts : []].flat();
    if (problem === undefined && warnings.length === 0) return [];
    const texts = keysOf(table).map(({ name }) => (name === 'hash' ? maskHash : String)(textOf(row, name)));
    return [
      {
        table,
        key: texts.join(' '),
        problem,
        warning: warnings.length > 0 ? warnings.join('; ') : undefined,
      },
    ];
  });

const count = (rows: ConfigRows): number => Object.values(rows).flat().length;

/**
 * Compares version `from` with version `to`, by default the newest. Without `from`, compares the newest
 * version with the tables.
 */
export async function diffConfig(
  ports: OperatorPorts,
  { from, to }: { from: number | undefined; to: number | undefined },
) {
  const { config } = ports;
  const newest = await config.newest();
  const rowsOf = async (version: number | undefined) => {
    const pointer = version === undefined ? newest : await config.version(version);
    return pointer ? config.rows(pointer) : emptyRows;
  };
  const describeVersion = (version: number | undefined) => `version ${version ?? newest?.version ?? 'none'}`;
  const before = await rowsOf(from);
  const after = from === undefined ? await config.tables() : await rowsOf(to);
  return {
    from: describeVersion(from),
    to: from === undefined ? 'the tables' : describeVersion(to),
    edit: { before, after },
    differences: differencesOf(
      changesBetween(before, after),
      listBadRows([...findProblems(before, ports), ...findProblems(after, ports)]),
    ),
  };
}

export async function exportRows(ports: OperatorPorts) {
  const tables = await ports.config.tables();
  const findings = findProblems(tables, ports);
  const bad = listBadRows(findings);
  const content = Object.fromEntries(
    configTables.map((table) => [
      table,
      [...indexRows(table, tables[table])]
        .filter(([key]) => !bad.has(nameOf({ table, key })))
        .toSorted(([a], [b]) => compareCodeUnits(a, b))
        .map(([, row]) => putKeyFirst(keyAttributes[table], row)),
    ]),
  );
  return {
    text: `${JSON.stringify(content, null, 2)}\n`,
    rows: Object.values(content).flat().length,
    problems: problemsOf(findings),
  };
}

const putKeyFirst = (keyName: string, row: RawRow): RawRow => ({
  [keyName]: row[keyName],
  ...(JSON.parse(canonicalJson(row)) as RawRow),
});
