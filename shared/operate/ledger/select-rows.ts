import type { LedgerRow } from '../../billing/ledger-row.ts';
import { usageFailure } from '../operator-failure.ts';
import { Progress } from '../../../infra/ops/cli/terminal/progress.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import { remark } from '../../../infra/ops/cli/terminal/terminal.ts';

export interface LedgerOptions {
  account?: string;
  /** Epoch milliseconds. */
  from?: number;
  to?: number;
  model?: string;
}

/** The ledger rows that were asked for, page by page; what cannot be read is said and left out. */
export async function* selectRows(session: Session, options: LedgerOptions): AsyncGenerator<LedgerRow[]> {
  const { account, from, to, model } = options;
  if (from !== undefined && to !== undefined && from >= to)
    throw usageFailure('--from must be before --to, which is not included');
  const progress = new Progress('ledger rows read');
  for await (const page of session.ledger.ledger({ account, fromMs: from, toMs: to })) {
    const rows: LedgerRow[] = [];
    for (const reading of page) {
      if ('problem' in reading) remark(`${reading.key}: ${reading.problem}`);
      else if (model === undefined || modelOf(reading.row) === model) rows.push(reading.row);
    }
    progress.add(page.length);
    yield rows;
  }
}

const modelOf = (row: LedgerRow): string | undefined => (row.kind === 'grant' ? undefined : row.model);
