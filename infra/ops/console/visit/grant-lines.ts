/** What became of a grant or a refund, in sentences. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import type { GrantMade, GrantPlan } from '../../../../shared/operate/accounts/grant-amount.ts';

export function grantLines(
  { grantId, amount }: Pick<GrantPlan, 'grantId' | 'amount'>,
  { made, isApplied, available }: GrantMade,
): string[] {
  const isMade = made.some(({ table }) => table === 'grants');
  const now = available === undefined ? '' : `: ${formatYuan(available)} yuan are available now`;
  return [
    isMade
      ? `Grant ${grantId} of ${formatYuan(amount)} yuan is written.`
      : `Grant ${grantId} was written before; nothing is written again.`,
    isApplied ? `It is applied${now}.` : 'It is not applied yet. It will be within minutes.',
  ];
}
