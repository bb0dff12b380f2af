/** Reads the ledger rows that match a filter, page by page. */
import type { LedgerRow } from '../../billing/ledger-row.ts';
import { usageFailure } from '../operator-failure.ts';
import type { Reading } from '../sum-reader.ts';
import type { OperatorPorts } from '../operator-ports.ts';

export interface LedgerFilter {
  account?: string | undefined;
  /** Start of the call in epoch milliseconds, inclusive. */
  fromMs?: number | undefined;
  /** Epoch milliseconds, exclusive. */
  toMs?: number | undefined;
  model?: string | undefined;
}

export interface LedgerPage {
  rows: LedgerRow[];
  /** One sentence for each row that is left out because it cannot be read. */
  problems: string[];
}

/** @param onProgress called with the number of further rows that were read */
export async function* selectRows(
  { ledger }: OperatorPorts,
  { account, fromMs, toMs, model }: LedgerFilter,
  onProgress: (count: number) => void,
): AsyncGenerator<LedgerPage> {
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs)
    throw usageFailure('--from must be before --to, which is not included');
  for await (const page of ledger.ledger({ account, fromMs, toMs })) {
    const { rows, problems } = readingsOf(page);
    onProgress(page.length);
    yield {
      rows: model === undefined ? rows : rows.filter((row) => row.kind !== 'grant' && row.model === model),
      problems,
    };
  }
}

export const readingsOf = (readings: Reading<LedgerRow>[]): LedgerPage => ({
  rows: readings.flatMap((reading) => ('row' in reading ? [reading.row] : [])),
  problems: readings.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])),
});
