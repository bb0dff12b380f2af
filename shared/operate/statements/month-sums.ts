/** Reads all months of an account, from the first that any relay can have to the present one. */
import { rowsIn, type ReadRows } from '../ledger/sum-rows.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { AccountMonth } from '../sum-reader.ts';

/** Before the first version. */
const firstYear = 2025;

/** Sorted by month. */
export async function readMonths(
  { clock, ledger }: Pick<OperatorPorts, 'clock' | 'ledger'>,
  account: string,
): Promise<ReadRows<AccountMonth>> {
  const years = new Date(clock.now()).getUTCFullYear() - firstYear + 1;
  const names = Array.from({ length: years * 12 }, (_, at) => {
    const month = String((at % 12) + 1).padStart(2, '0');
    return `${firstYear + Math.floor(at / 12)}-${month}`;
  });
  const found = await ledger.accountMonths(names.map((month) => ({ account, month })));
  const { rows, problems } = await rowsIn(onePage(found));
  return { rows: rows.toSorted((a, b) => (a.month < b.month ? -1 : 1)), problems };
}

async function* onePage<Row>(rows: Row[]): AsyncIterable<Row[]> {
  yield rows;
}
