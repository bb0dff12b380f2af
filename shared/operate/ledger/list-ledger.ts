/** View: the newest ledger rows. */
import { type LedgerRow, ledgerTimeMs } from '../../billing/ledger-row.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { selectRows, type LedgerFilter } from './select-rows.ts';

export interface LedgerList {
  /** Newest first. */
  rows: LedgerRow[];
  /** Number of matching rows, including those beyond the limit. */
  count: number;
  /** One sentence for each row that is left out because it cannot be read. */
  problems: string[];
}

/** @param onProgress called with the number of further rows that were read */
export async function listLedger(
  ports: OperatorPorts,
  { limit, ...filter }: LedgerFilter & { limit: number },
  onProgress: (count: number) => void,
): Promise<LedgerList> {
  let rows: LedgerRow[] = [];
  let count = 0;
  const problems: string[] = [];
  for await (const page of selectRows(ports, filter, onProgress)) {
    count += page.rows.length;
    rows = [...rows, ...page.rows].toSorted((a, b) => ledgerTimeMs(b) - ledgerTimeMs(a)).slice(0, limit);
    problems.push(...page.problems);
  }
  return { rows, count, problems };
}
