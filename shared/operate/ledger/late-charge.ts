/**
 * View: what a call was charged after its reservation expired. The difference has a ledger row of its own, so who says what
 * a call cost, or returns it, must read both.
 */
import { latePrefix, type CloseRow, type LedgerRow } from '../../billing/ledger-row.ts';
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';

/** Undefined: the row of the call has all that it was charged. One more read, of expired calls alone. */
export async function lateCharge(
  { ledger }: Pick<OperatorPorts, 'ledger'>,
  { kind, id }: LedgerRow,
): Promise<CloseRow | undefined> {
  if (kind !== 'expired') return undefined;
  const reading = await ledger.request(latePrefix + id);
  if (!reading) return undefined;
  if ('problem' in reading)
    throw new Failure(`the row of its late charge cannot be read: ${reading.problem}`);
  return reading.row.kind === 'grant' ? undefined : reading.row;
}
