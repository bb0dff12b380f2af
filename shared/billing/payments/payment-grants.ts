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
      const { minor, currency, kind, grewFrom = [] } = reversal;
      const text = paymentText(reversal);
      const taken = [...grewFrom, minor].flatMap((total, at) => {
        const before = grewFrom[at - 1] ?? 0n;
        const grantId = at === 0 ? reversalId : `${reversalId}-to-${total}`;
        const grown = at === 0 ? '' : `, grown from ${paymentText({ minor: before, currency })}`;
        const reason = `${kind} of ${paymentText({ minor: total, currency })}${grown}`;
        return grant(grantId, { minor: before - total, currency }, reason);
      });
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
  if (foreign) return 'a refund or dispute in another currency than the payment';
  const taken = takenOf(after);
  const takenBefore = before?.state === 'granted' ? takenOf(before) : 0n;
  return taken > paid.minor && taken > takenBefore
    ? 'refunds and disputes of more than the payment'
    : undefined;
}

/** What left of a payment and has not come back, in its own currency. */
const takenOf = ({ paid, reversals }: Payment): bigint =>
  Object.values(reversals)
    .filter(({ state, currency }) => state === 'taken' && currency === paid?.currency)
    .reduce((sum, { minor }) => sum + minor, 0n);

/** `payment of 10 usd: 71 yuan`, for plans and lists. */
export const grantText = ({ amount, reason }: Grant): string => `${reason}: ${formatYuan(amount)} yuan`;
