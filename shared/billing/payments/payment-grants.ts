/** The grants that follow from a payment: one for the payment, one for each way of a refund or dispute. */
import { formatYuan } from '../amount.ts';
import type { Grant } from '../grant.ts';
import { paymentText, yuanOf, type PaymentAmount } from './payment-amount.ts';
import type { Payment, Reversal } from './payment.ts';

/** What a change of a payment brings about. Both are written together or not at all. */
export interface PaymentChange {
  /** Undefined: the payment is new. */
  before: Payment | undefined;
  after: Payment;
  grants: Grant[];
}

export function paymentChange(before: Payment | undefined, after: Payment): PaymentChange {
  const earlier = new Set(before && grantsOf(before).map(({ grant_id }) => grant_id));
  return { before, after, grants: grantsOf(after).filter(({ grant_id }) => !earlier.has(grant_id)) };
}

/** Every grant that ought to exist for the payment. Ids are the provider's, so each exists once. */
export function grantsOf({ state, id, account, paid, rate, reversals }: Payment): Grant[] {
  if (state !== 'granted' || account === undefined || !paid || rate === undefined) return [];
  const grant = (grant_id: string, { minor, currency }: PaymentAmount, reason: string): Grant[] => {
    const amount = yuanOf({ minor, currency }, rate);
    return amount === 0n ? [] : [{ account, grant_id, amount, reason }];
  };
  return [
    ...grant(id, paid, `payment of ${paymentText(paid)}`),
    ...Object.entries(reversals).flatMap(([reversalId, reversal]) => {
      if (reversal.state === 'void' || isForeign(paid, reversal)) return [];
      const { minor, currency, kind } = reversal;
      const text = paymentText(reversal);
      const taken = grant(reversalId, { minor: -minor, currency }, `${kind} of ${text}`);
      if (reversal.state === 'taken') return taken;
      return taken.concat(grant(`${reversalId}-returned`, reversal, `${kind} of ${text} returned`));
    }),
  ];
}

/** An amount in another currency than the payment's cannot be converted at the payment's rate. */
const isForeign = (paid: PaymentAmount, { currency, state }: Reversal): boolean =>
  currency !== paid.currency && state !== 'void';

/** Why a change needs an operator, in words for the log; undefined: it does not. */
export function needsOperator({ before, after }: PaymentChange): string | undefined {
  if (after.state === 'parked' && before?.state !== 'parked') return after.problem;
  if (after.state !== 'granted' || !after.paid) return undefined;
  const { paid } = after;
  const isNew = (id: string, { state }: Reversal): boolean =>
    before?.state !== 'granted' || before.reversals[id]?.state !== state;
  const foreign = Object.entries(after.reversals).some(
    ([id, reversal]) => isForeign(paid, reversal) && isNew(id, reversal),
  );
  return foreign ? 'a refund or dispute in another currency than the payment' : undefined;
}

/** `payment of 10 usd: 71 yuan`, for plans and lists. */
export const grantText = ({ amount, reason }: Grant): string => `${reason}: ${formatYuan(amount)} yuan`;
