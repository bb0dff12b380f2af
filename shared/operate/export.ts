/**
 * View: everything about people and money, page by page: rows of the configuration, keys, accounts, grants, codes, and the ledger of a time.
 * Shows only the name and the problem of an unreadable row, because it may hold a secret anywhere.
 */
import { AccountRow } from '../config/rows/account-row.ts';
import { maskHash } from '../config/rows/key-row.ts';
import { plainRow, readRow, textOf } from '../config/rows/read-row.ts';
import { keyAttributes } from '../config/rows/read-table.ts';
import { configTables } from './config/row-changes.ts';
import { listRows } from './config/write-rows.ts';
import { hideInvalidAmount } from './customers/grants.ts';
import { judgeKey } from './keys/list-keys.ts';
import { formatLedgerRow, selectRows } from './ledger/ledger.ts';
import type { LedgerSelection, OperatorPorts, RawRow } from './operator-ports.ts';

const pageRows = 1000;

/** @param selection of the ledger alone */
export async function* exportPages(
  ports: OperatorPorts,
  selection: Pick<LedgerSelection, 'fromMs' | 'toMs'>,
): AsyncGenerator<{ table: string; rows: readonly unknown[]; problems?: readonly string[] }> {
  for (const table of configTables) {
    const rows = await listRows(ports, table);
    yield {
      table,
      rows: rows.map(({ key, row, problem }) => row ?? { [keyAttributes[table]]: key, problem }),
    };
  }
  for (const table of ['accounts', 'keys'] as const) {
    let after: string | undefined;
    do {
      const { rows, next } = await ports.pages.rows({ table, after, limit: pageRows });
      yield { table, rows: rows.map((row) => exportRow(table, row, ports.clock.now())) };
      after = next;
    } while (after !== undefined);
  }
  for await (const rows of ports.ledger.grants())
    yield { table: 'grants', rows: rows.map(hideInvalidAmount) };
  yield { table: 'codes', rows: (await ports.tables.scan('codes')).map(plainRow) };
  for await (const { rows, problems } of selectRows(ports, selection))
    yield { table: 'ledger', rows: rows.map(formatLedgerRow), problems };
}

function exportRow(table: 'accounts' | 'keys', row: RawRow, nowMs: number): unknown {
  if (table === 'keys') {
    const { state, why } = judgeKey(row, nowMs);
    return state === 'invalid' ? { hash: maskHash(textOf(row, 'hash')), problem: why } : plainRow(row);
  }
  const reading = readRow(AccountRow, row);
  return 'problem' in reading ? { account: textOf(row, 'account'), problem: reading.problem } : plainRow(row);
}
