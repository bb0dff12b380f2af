import { formatYuan } from '../../billing/amount.ts';
import { type LedgerRow, ledgerTimeMs } from '../../billing/ledger-row.ts';
import { isoTime } from '../../wire/iso-time.ts';

type Cell = string | number | boolean;

/** A ledger row as it is printed for programs: attributes as the table names them, amounts as exact decimals. */
export function ledgerJson(row: LedgerRow): Record<string, Cell> {
  const { at, ...rest } = row;
  const cells = { began: isoTime(ledgerTimeMs(row)), booked: at, ...rest };
  return Object.fromEntries(
    Object.entries(cells).flatMap(([name, value]: [string, Cell | bigint | undefined]) =>
      value === undefined ? [] : [[name, typeof value === 'bigint' ? formatYuan(value) : value]],
    ),
  );
}

/** The columns of CSV: nothing but names, so that files of different days fit together. */
export const ledgerColumns =
  'began booked account id kind endpoint model key charge reserved prompt_tokens completion_tokens estimated end price plan_slot official cost amount reason'.split(
    ' ',
  );
