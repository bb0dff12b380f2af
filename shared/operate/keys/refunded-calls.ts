/** Adds up what refunds of some calls returned: grants named `refund#<id>`, `refund#<id>#2`. */
import { parseYuan, type NanoYuan } from '../../billing/amount.ts';
import type { OperatorPorts } from '../operator-ports.ts';

/** @param ids of the calls */
export async function refundedOf(
  { ledger }: Pick<OperatorPorts, 'ledger'>,
  account: string,
  ids: ReadonlySet<string>,
): Promise<NanoYuan> {
  if (ids.size === 0) return 0n;
  const grants = (await Array.fromAsync(ledger.grants(account))).flat();
  return grants
    .filter(({ grantId }) => grantId.startsWith('refund#') && ids.has(grantId.split('#')[1] ?? ''))
    .reduce((sum, { amount }) => sum + (parseYuan(amount) ?? 0n), 0n);
}
