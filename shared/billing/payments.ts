/**
 * A payment as the table `payments` has it, and what a fact that the provider reports makes of it. Facts come in any
 * order and any number of times:
 *
 *     nothing --reversal--> expected --paid--> granted
 *                                       \----> parked --assign, or paid again without the problem--> granted
 *                                                     \--reject--> rejected
 */
import { formatDecimal, parseDecimal, type NanoYuan, formatYuan } from './price.ts';
import type { Grant } from './ledger-row.ts';

export interface Payment {
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
  problem?: string | undefined;
  /** false: made in the provider's test mode. */
  live?: boolean | undefined;
  reversals: Readonly<Record<string, Reversal>>;
}

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
export function applyFact(before: Payment | undefined, fact: PaidFact | ReversalFact): Payment {
  const known = before ?? newPayment(fact);
  const changes = fact.kind === 'paid' ? afterPaid(known, fact) : afterReversal(known, fact);
  return changes ? nextVersion(known, changes) : known;
}

const nextVersion = (payment: Payment, changes: Partial<Payment>): Payment => ({
  ...payment,
  ...changes,
  version: payment.version + 1,
});

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
export const assignPayment = (payment: Payment, account: string, rate: string): Payment =>
  nextVersion(payment, { state: 'granted', account, rate, problem: undefined });

/** What an operator makes of a parked payment that is no account's. Nothing is granted, for its refunds neither. */
export const rejectPayment = (payment: Payment): Payment => nextVersion(payment, { state: 'rejected' });

// Converts amounts as Stripe writes them, whole numbers of a currency's smallest unit, to yuan and to text.

/** An amount in the smallest unit of a currency, as Stripe writes it: 1000 `usd` are 10 dollars, 1000 `jpy` 1000 yen. */
export interface PaymentAmount {
  minor: bigint;
  currency: string;
}

/** Currencies whose amounts Stripe writes without decimals. https://docs.stripe.com/currencies */
const withoutDecimals = new Set('bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' '));
const withThreeDecimals = new Set('bhd jod kwd omr tnd'.split(' '));

/** Stripe describes `ugx` both with and without decimals, so its amounts have two meanings. */
export const ambiguousCurrency = 'ugx';

/** All other currencies have two, `isk` too, whose amounts Stripe still writes with two. */
export function decimalsOf(currency: string): 0 | 2 | 3 {
  if (withoutDecimals.has(currency)) return 0;
  return withThreeDecimals.has(currency) ? 3 : 2;
}

/** Rates have at most this many decimals, so that every conversion is exact and nothing is rounded. */
export const rateDecimals = 6;

/** @param rate yuan for one unit of the currency, a decimal with at most 6 decimals */
export function convertToYuan({ minor, currency }: PaymentAmount, rate: string): NanoYuan {
  const micro = parseDecimal(rate, rateDecimals, true);
  if (micro === undefined) throw new Error('payments: a rate that is not a decimal');
  return minor * micro * 10n ** BigInt(3 - decimalsOf(currency));
}

/** The amount as people write it: `10.5 usd`. */
export function formatPayment({ minor, currency }: PaymentAmount): string {
  const decimals = decimalsOf(currency);
  return `${decimals === 0 ? minor : formatDecimal(minor, decimals)} ${currency}`;
}

/** Reads an amount as people write it; undefined: not a decimal, or more decimals than the currency has. */
export function parsePayment(written: string, currency: string): PaymentAmount | undefined {
  const minor = parseDecimal(written, decimalsOf(currency), true);
  return minor === undefined ? undefined : { minor, currency };
}

// The grants that follow from a payment: one for the payment, one for each way of a refund or dispute.

/** What a change of a payment brings about. Both are written together or not at all. */
export interface PaymentChange {
  before: Payment | undefined;
  after: Payment;
  grants: Grant[];
}

export function planPaymentChange(before: Payment | undefined, after: Payment): PaymentChange {
  const earlier = new Set(before && grantsOf(before).map(({ grant_id }) => grant_id));
  return { before, after, grants: grantsOf(after).filter(({ grant_id }) => !earlier.has(grant_id)) };
}

/** Every grant that ought to exist for the payment. Ids are the provider's, so each exists once. */
export function grantsOf({ state, id, account, paid, rate, reversals }: Payment): Grant[] {
  if (state !== 'granted' || account === undefined || !paid || rate === undefined) return [];
  const grant = (grant_id: string, { minor, currency }: PaymentAmount, reason: string): Grant[] => {
    const amount = convertToYuan({ minor, currency }, rate);
    return amount === 0n ? [] : [{ account, grant_id, amount, reason }];
  };
  return [
    ...grant(id, paid, `payment of ${formatPayment(paid)}`),
    ...Object.entries(reversals).flatMap(([reversalId, reversal]) => {
      if (reversal.state === 'void' || isForeign(paid, reversal)) return [];
      const { minor, currency, kind, grewFrom = [] } = reversal;
      const text = formatPayment(reversal);
      const taken = [...grewFrom, minor].flatMap((total, at) => {
        const before = grewFrom[at - 1] ?? 0n;
        const grantId = at === 0 ? reversalId : `${reversalId}-to-${total}`;
        const grown = at === 0 ? '' : `, grown from ${formatPayment({ minor: before, currency })}`;
        const reason = `${kind} of ${formatPayment({ minor: total, currency })}${grown}`;
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
export function explainOperatorNeed({ before, after }: PaymentChange): string | undefined {
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
export const formatGrant = ({ amount, reason }: Grant): string => `${reason}: ${formatYuan(amount)} yuan`;

// The reference that a checkout carries: which account a payment is for, and how much of what it asks for. It is signed,
// because whoever opens a checkout can change what stands in its address.

export interface PaymentReference extends PaymentAmount {
  account: string;
  /** Sets references of equal content apart. */
  nonce: string;
}

/** Stripe drops a `client_reference_id` that is longer, or that has other characters than letters, digits, - and _. */
export const referenceLengthMax = 200;

const form = /^([0-9a-f]{64})-(([a-z]{3})-(\d{1,15})-([0-9a-f]{16})-([A-Za-z0-9_-]+))$/;

/** The part of a reference that its signature covers. */
export const formatReferenceBody = ({ account, currency, minor, nonce }: PaymentReference): string =>
  `${currency}-${minor}-${nonce}-${encodedAccount(account)}`;

/** What is signed. The first line keeps a signature from meaning anything elsewhere. */
export const formatTextToSign = (body: string): string => `relay payment reference 1\n${body}`;

export const addSignature = (body: string, signature: string): string => `${signature}-${body}`;

interface SignedReference {
  reference: PaymentReference;
  signature: string;
  body: string;
}

export function parseReference(text: string): SignedReference | undefined {
  const [, signature, body, currency, minor, nonce, encoded] = form.exec(text) ?? [];
  if (!signature || !body || !currency || !minor || !nonce || !encoded) return undefined;
  const account = decodedAccount(encoded);
  if (account === undefined) return undefined;
  return { reference: { account, currency, minor: BigInt(minor), nonce }, signature, body };
}

/** Letters, digits and - stay; every other byte becomes `_` and two hex digits. */
const encodedAccount = (account: string): string =>
  encodeURIComponent(account)
    .replaceAll(/[_.!~*'()]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%', '_');

function decodedAccount(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded.replaceAll('_', '%'));
  } catch {
    return undefined;
  }
}
