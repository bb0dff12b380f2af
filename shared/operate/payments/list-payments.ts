/** View: payments that providers reported. */
import type { Payment } from '../../billing/payments/payment.ts';
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import type { OperatorPorts } from '../operator-ports.ts';

/** @returns the newest first */
export async function listPayments(
  { payments }: OperatorPorts,
  { parked }: { parked?: boolean | undefined },
): Promise<Payment[]> {
  const all = (await Array.fromAsync(payments.all())).flat();
  return all
    .filter(({ state }) => !parked || state === 'parked')
    .toSorted((a, b) => compareCodeUnits(b.at, a.at) || compareCodeUnits(a.id, b.id));
}
