/**
 * A payment as the table `payments` has it, and what a fact that the provider reports makes of it. Facts come in any
 * order and any number of times:
 *
 *     nothing --reversal--> expected --paid--> granted
 *                                       \----> parked --assign, or paid again without the problem--> granted
 *                                                     \--reject--> rejected
 */
import type { PaymentAmount } from './payment-amount.ts';

export interface Payment {
  /** The provider's id of the payment. */
  id: string;
  /** Counts the writes: a write holds only if no other came between. */
  version: number;
  /** `expected`: only a refund or dispute of it was reported. `parked`: an operator has to say whose it is. */
  state: 'expected' | 'parked' | 'granted' | 'rejected';
  /** When the provider first reported something of it: ISO 8601. */
  at: string;
  paid?: PaymentAmount | undefined;
  /** Yuan for one unit of the currency when it was paid. Absent: the setting had none. */
  rate?: string | undefined;
  account?: string | undefined;
  /** Why it is parked. */
  problem?: string | undefined;
  /** false: made in the provider's test mode. */
  live?: boolean | undefined;
  reversals: Readonly<Record<string, Reversal>>;
}

/** A refund or a dispute, by its own id. */
export interface Reversal extends PaymentAmount {
  kind: 'refund' | 'dispute';
  /**
   * `taken`: the money left. `returned`: it left and came back. `void`: it is known to have come back, and that it had left
   * was never reported; nothing follows.
   */
  state: 'taken' | 'returned' | 'void';
  /** The smaller amounts that were reported and taken before, from the first on. Absent: none was. */
  grewFrom?: readonly bigint[] | undefined;
}

export interface PaidFact {
  kind: 'paid';
  payment: string;
  /** When the provider reported it: ISO 8601. */
  at: string;
  paid: PaymentAmount;
  live: boolean;
  rate: string | undefined;
  /** Undefined: unknown. */
  account: string | undefined;
  /** Why it cannot be granted; undefined: it can. */
  problem: string | undefined;
}

export interface ReversalFact {
  kind: 'reversal';
  payment: string;
  at: string;
  id: string;
  /** `void` is never reported. */
  reversal: Reversal;
}

/** The payment after a fact: `before` itself if the fact changes nothing. */
export function afterFact(before: Payment | undefined, fact: PaidFact | ReversalFact): Payment {
  const known = before ?? newPayment(fact);
  const changes = fact.kind === 'paid' ? afterPaid(known, fact) : afterReversal(known, fact);
  return changes ? { ...known, ...changes, version: known.version + 1 } : known;
}

const newPayment = ({ payment: id, at }: PaidFact | ReversalFact): Payment => ({
  id,
  version: 0,
  state: 'expected',
  at,
  reversals: {},
});

function afterPaid({ state }: Payment, fact: PaidFact): Partial<Payment> | undefined {
  const { paid, live, rate, account, problem } = fact;
  if (state === 'granted' || state === 'rejected') return undefined;
  if (problem === undefined) return { state: 'granted', paid, live, rate, account, problem };
  return state === 'parked' ? undefined : { state: 'parked', paid, live, rate, account, problem };
}

function afterReversal({ reversals }: Payment, { id, reversal }: ReversalFact): Partial<Payment> | undefined {
  const earlier = reversals[id];
  const after = earlier ? afterReport(earlier, reversal) : firstReport(reversal);
  return after && { reversals: { ...reversals, [id]: after } };
}

const firstReport = (reversal: Reversal): Reversal =>
  reversal.state === 'returned' ? { ...reversal, state: 'void' } : reversal;

/** The way back comes last and is of what was taken, so a report of the money's leaving that comes after it is late. */
function afterReport(earlier: Reversal, { state, minor, currency }: Reversal): Reversal | undefined {
  if (earlier.state !== 'taken') return undefined;
  if (state !== 'taken') return { ...earlier, state };
  // A dispute may grow. Reports come in any order, so a smaller amount is an older one.
  if (minor <= earlier.minor || currency !== earlier.currency) return undefined;
  return { ...earlier, minor, grewFrom: [...(earlier.grewFrom ?? []), earlier.minor] };
}

/** What an operator makes of a parked payment: whose it is. */
export const assigned = (payment: Payment, account: string, rate: string): Payment => ({
  ...payment,
  version: payment.version + 1,
  state: 'granted',
  account,
  rate,
  problem: undefined,
});

/** What an operator makes of a parked payment that is no account's. Nothing is granted, for its refunds neither. */
export const rejected = (payment: Payment): Payment => ({
  ...payment,
  version: payment.version + 1,
  state: 'rejected',
});
