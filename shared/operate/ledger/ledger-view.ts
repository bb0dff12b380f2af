/**
 * Converts a ledger row for programs: attributes named as in the table (but `at` is `booked`), exact decimal
 * amounts.
 */
import { formatYuan } from '../../billing/amount.ts';
import { type LedgerRow, ledgerTimeMs } from '../../billing/ledger-row.ts';
import { isoTime } from '../../wire/iso-time.ts';

type Cell = string | number | boolean;

export function ledgerJson(row: LedgerRow): Record<string, Cell> {
  const { at, ...rest } = row;
  const cells = { began: isoTime(ledgerTimeMs(row)), booked: at, ...rest };
  return Object.fromEntries(
    Object.entries(cells).flatMap(([name, value]: [string, Cell | bigint | undefined]) =>
      value === undefined ? [] : [[name, typeof value === 'bigint' ? formatYuan(value) : value]],
    ),
  );
}
