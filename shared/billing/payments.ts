/**
 * Payments at Stripe: how facts that it reports change a payment of the table `payments`, the grants that follow, amounts in
 * currencies, and the signed reference of a checkout. Facts may arrive in any order and any number of times:
 *
 *     nothing --reversal--> expected --paid--> granted
 *                                       \----> parked --assign, or paid again without the problem--> granted
 *                                       |             \--reject--> rejected
 *                                       \----> plan, if the reference has a level: buys a month of it, grants nothing
 */
import {
  divideHalfUp,
  formatDecimal,
  parseDecimal,
  parseYuan,
  smaller,
  type NanoYuan,
  formatYuan,
} from './money.ts';
import type { Grant } from './ledger-row.ts';
import type { StoredCard } from './auto-top-up.ts';
import type { BoughtMonth } from './plan-sale.ts';
import type { Subscription } from './reservation.ts';

export interface Payment {
  id: string;
  /** Counts the writes. A write is refused if another came between. */
  version: number;
  /** `expected`: only a refund or dispute was reported. `parked`: an operator must say whose payment it is. */
  state: 'expected' | 'parked' | 'granted' | 'rejected' | 'plan';
  /** When the provider first reported it, in ISO 8601. */
  at: string;
  paid?: PaymentAmount | undefined;
  /** Yuan for one unit of the currency at the time, if the setting had a rate. */
  rate?: string | undefined;
  /** Yuan credited on top, by the setting at that time. Refunds take it back in proportion. */
  bonus?: string | undefined;
  account?: string | undefined;
  /** Stored for automatic top-ups when the payment is granted: only one of a payment's events contains it. */
  card?: StoredCard | undefined;
  problem?: string | undefined;
  /** The level of the plan that the payment buys. */
  level?: number | undefined;
  bought?: BoughtMonth | undefined;
  /** false in the provider's test mode. */
  live?: boolean | undefined;
  reversals: Readonly<Record<string, Reversal>>;
}

export interface Reversal extends PaymentAmount {
  kind: 'refund' | 'dispute';
  /**
   * `taken`: the money left. `returned`: it left and came back. `void`: only its return was reported, so no grant follows.
   */
  state: 'taken' | 'returned' | 'void';
  /** The smaller amounts that were taken before, from the first on. */
  grewFrom?: readonly bigint[] | undefined;
}

export interface PaidFact {
  kind: 'paid';
  payment: string;
  at: string;
  paid: PaymentAmount;
  live: boolean;
  rate: string | undefined;
  bonus: string | undefined;
  account: string | undefined;
  card?: StoredCard | undefined;
  level?: number | undefined;
  bought?: BoughtMonth | undefined;
  /** Why it cannot be granted. */
  problem: string | undefined;
}

export interface ReversalFact {
  kind: 'reversal';
  payment: string;
  at: string;
  id: string;
  reversal: Reversal;
}

/** Returns `before` itself if the fact changes nothing. */
export function applyFact(before: Payment | undefined, fact: PaidFact | ReversalFact): Payment {
  const known = before ?? createPayment(fact);
  const changes = fact.kind === 'paid' ? applyPaid(known, fact) : applyReversal(known, fact);
  return changes ? changePayment(known, changes) : known;
}

const changePayment = (payment: Payment, changes: Partial<Payment>): Payment => ({
  ...payment,
  ...changes,
  version: payment.version + 1,
});

const createPayment = ({ payment: id, at }: PaidFact | ReversalFact): Payment => ({
  id,
  version: 0,
  state: 'expected',
  at,
  reversals: {},
});

function applyPaid({ state, account, card }: Payment, fact: PaidFact): Partial<Payment> | undefined {
  const { kind: _, payment: __, at: ___, ...reported } = fact;
  const facts = { ...reported, card: reported.card ?? card };
  if (state !== 'expected' && state !== 'parked') return undefined;
  if (fact.problem === undefined) return { ...facts, state: fact.level === undefined ? 'granted' : 'plan' };
  const hasCard = card !== undefined || fact.card === undefined;
  const isRepeat = fact.account === undefined || (account !== undefined && hasCard);
  if (state === 'parked' && isRepeat) return undefined;
  // The account and the rate stay those of the first report.
  return account === undefined ? { ...facts, state: 'parked' } : { card: facts.card };
}

function applyReversal({ reversals }: Payment, { id, reversal }: ReversalFact): Partial<Payment> | undefined {
  const earlier = reversals[id];
  const after = earlier ? updateReversal(earlier, reversal) : startReversal(reversal);
  return after && { reversals: { ...reversals, [id]: after } };
}

const startReversal = (reversal: Reversal): Reversal =>
  reversal.state === 'returned' ? { ...reversal, state: 'void' } : reversal;

/** A return is always the last fact, so a report of money taken that arrives after it is late. */
function updateReversal(earlier: Reversal, { state, minor, currency }: Reversal): Reversal | undefined {
  if (earlier.state !== 'taken') return undefined;
  if (state !== 'taken') return { ...earlier, state };
  // A dispute may grow, so a report of a smaller amount is older.
  if (minor <= earlier.minor || currency !== earlier.currency) return undefined;
  return { ...earlier, minor, grewFrom: [...(earlier.grewFrom ?? []), earlier.minor] };
}

export const assignPayment = (
  payment: Payment,
  { account, rate, bonus }: Pick<Payment, 'account' | 'rate' | 'bonus'>,
): Payment =>
  changePayment(payment, { state: 'granted', account, rate, bonus, problem: undefined, level: undefined });

/** For a parked payment that is no account's. Neither it nor its refunds are granted. */
export const rejectPayment = (payment: Payment): Payment => changePayment(payment, { state: 'rejected' });

// Amounts

/** An amount in the smallest unit of a currency, as Stripe writes it: 1000 `usd` is 10 dollars, 1000 `jpy` 1000 yen. */
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

/** Returns the smallest amount that covers the yuan at the rate, rounded up to the currency's smallest unit. */
export function findLeastPayment(yuan: NanoYuan, currency: string, rate: string): PaymentAmount {
  // In currencies with three decimals, Stripe requires the last digit to be 0.
  const step = decimalsOf(currency) === 3 ? 10n : 1n;
  const nano = convertToYuan({ minor: step, currency }, rate);
  return { minor: ((yuan + nano - 1n) / nano) * step, currency };
}

/** The amount as people write it: `10.5 usd`. */
export function formatPayment({ minor, currency }: PaymentAmount): string {
  const decimals = decimalsOf(currency);
  return `${decimals === 0 ? minor : formatDecimal(minor, decimals)} ${currency}`;
}

export function parsePayment(written: string, currency: string): PaymentAmount | undefined {
  const minor = parseDecimal(written, decimalsOf(currency), true);
  return minor === undefined ? undefined : { minor, currency };
}

// Bonus steps

/** In yuan: a payment of at least `pay` gets `get - pay` on top. */
export interface BonusStep {
  pay: number;
  get: number;
}

/** Returns the bonus of the highest step that a payment reaches. Undefined without a rate, or if it reaches no step. */
export function findBonus(
  steps: readonly BonusStep[] = [],
  paid: PaymentAmount,
  rate: string | undefined,
): string | undefined {
  if (rate === undefined) return undefined;
  const yuan = convertToYuan(paid, rate);
  const step = steps.findLast(({ pay }) => (parseYuan(pay) ?? 0n) <= yuan);
  return step && formatYuan(bonusOfStep(step));
}

export const bonusOfStep = ({ pay, get }: BonusStep): NanoYuan =>
  (parseYuan(get) ?? 0n) - (parseYuan(pay) ?? 0n);

// The grants of a payment: one for the payment, one for each movement of a refund or dispute, and one for the bonus share of each.

/** Payment and grants are written in one transaction. */
export interface PaymentChange {
  before: Payment | undefined;
  after: Payment;
  grants: Grant[];
  /** The plan to write into the account's row, if that row is still as `seen`. */
  plan?: { seen: SeenAccount; plan: Subscription } | undefined;
}

/** A row of `accounts` as a store read it. */
export interface SeenAccount {
  account: string;
  plan: Subscription | undefined;
  stored: object;
}

export function planPaymentChange(before: Payment | undefined, after: Payment): PaymentChange {
  const earlier = new Set(before && grantsOf(before).map(({ grant_id }) => grant_id));
  return { before, after, grants: grantsOf(after).filter(({ grant_id }) => !earlier.has(grant_id)) };
}

/** Lists every grant that should exist for the payment. Ids are the provider's, so each exists once. */
export function grantsOf({ state, id, account, paid, rate, bonus = '0', reversals }: Payment): Grant[] {
  if (state !== 'granted' || account === undefined || !paid || rate === undefined) return [];
  const bonusOf = (minor: bigint): NanoYuan =>
    divideHalfUp((parseYuan(bonus) ?? 0n) * smaller(minor, paid.minor), paid.minor);
  /** Credits the step between two totals of a payment, refund or dispute. Bonus shares come from totals, so the steps add up exactly. */
  const grant = (grantId: string, [from, to]: readonly [bigint, bigint], reason: string): Grant[] =>
    [
      {
        account,
        grant_id: grantId,
        amount: convertToYuan({ minor: to - from, currency: paid.currency }, rate),
        reason,
      },
      {
        account,
        grant_id: `${grantId}-bonus`,
        amount: bonusOf(to) - bonusOf(from),
        reason: `bonus of the ${reason}`,
      },
    ].filter(({ amount }) => amount !== 0n);
  return [
    ...grant(id, [0n, paid.minor], `payment of ${formatPayment(paid)}`),
    ...Object.entries(reversals).flatMap(([reversalId, reversal]) => {
      if (reversal.state === 'void' || isForeign(paid, reversal)) return [];
      const { minor, currency, kind, grewFrom = [] } = reversal;
      const text = formatPayment(reversal);
      const taken = [...grewFrom, minor].flatMap((total, at) => {
        const before = grewFrom[at - 1] ?? 0n;
        const grantId = at === 0 ? reversalId : `${reversalId}-to-${total}`;
        const grown = at === 0 ? '' : `, grown from ${formatPayment({ minor: before, currency })}`;
        const reason = `${kind} of ${formatPayment({ minor: total, currency })}${grown}`;
        return grant(grantId, [total, before], reason);
      });
      if (reversal.state === 'taken') return taken;
      return taken.concat(grant(`${reversalId}-returned`, [0n, minor], `${kind} of ${text} returned`));
    }),
  ];
}

/** An amount in another currency than the payment's cannot be converted at the payment's rate. */
const isForeign = (paid: PaymentAmount, { currency, state }: Reversal): boolean =>
  currency !== paid.currency && state !== 'void';

/** Says, for the log, why a change needs an operator. */
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
  const taken = sumTaken(after);
  const takenBefore = before?.state === 'granted' ? sumTaken(before) : 0n;
  return taken > paid.minor && taken > takenBefore
    ? 'refunds and disputes of more than the payment'
    : undefined;
}

/** Refunds and disputes took all that was paid. */
export const isTakenBack = (payment: Payment): boolean =>
  payment.paid !== undefined && sumTaken(payment) >= payment.paid.minor;

/** A refund or dispute stops automatic top-ups, so a later report of the payment must not store its card again. */
export const mayStoreCard = ({ state, reversals }: Payment): boolean =>
  state === 'granted' && Object.keys(reversals).length === 0;

/** Sums what was taken and not returned, in the payment's currency. */
const sumTaken = ({ paid, reversals }: Payment): bigint =>
  Object.values(reversals)
    .filter(({ state, currency }) => state === 'taken' && currency === paid?.currency)
    .reduce((sum, { minor }) => sum + minor, 0n);

/** `payment of 10 usd: 71 yuan`, for plans and lists. */
export const formatGrant = ({ amount, reason }: Grant): string => `${reason}: ${formatYuan(amount)} yuan`;

// The reference of a checkout: the account, and the amount that it asks for. It is signed, because anyone who opens a checkout can
// edit its address.

export interface PaymentReference extends PaymentAmount {
  account: string;
  /** Makes references of equal content differ. */
  nonce: string;
  /** Set if the payment buys a month of this plan instead of balance. */
  level?: number | undefined;
}

/** Stripe drops a `client_reference_id` that is longer, or that has other characters than letters, digits, - and _. */
export const referenceLengthMax = 200;

const form = /^(?:p([1-3])-)?([0-9a-f]{64})-(([a-z]{3})-(\d{1,15})-([0-9a-f]{16})-([A-Za-z0-9_-]+))$/;

export const formatReferenceBody = ({ account, currency, minor, nonce }: PaymentReference): string =>
  `${currency}-${minor}-${nonce}-${encodeAccount(account)}`;

/** The first line keeps the signature from being valid for anything else. */
export const formatTextToSign = (body: string, level?: number): string =>
  `relay ${level === undefined ? 'payment' : `plan ${level}`} reference 1\n${body}`;

export const addSignature = (body: string, signature: string, level?: number): string =>
  `${level === undefined ? '' : `p${level}-`}${signature}-${body}`;

interface SignedReference {
  reference: PaymentReference;
  signature: string;
  body: string;
}

export function parseReference(text: string): SignedReference | undefined {
  const [, level, signature, body, currency, minor, nonce, encoded] = form.exec(text) ?? [];
  if (!signature || !body || !currency || !minor || !nonce || !encoded) return undefined;
  const account = decodeAccount(encoded);
  if (account === undefined) return undefined;
  const reference = {
    account,
    currency,
    minor: BigInt(minor),
    nonce,
    ...(level && { level: Number(level) }),
  };
  return { reference, signature, body };
}

/** Keeps letters, digits and -, and writes every other byte as `_` and two hex digits. */
const encodeAccount = (account: string): string =>
  encodeURIComponent(account)
    .replaceAll(/[_.!~*'()]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%', '_');

function decodeAccount(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded.replaceAll('_', '%'));
  } catch {
    return undefined;
  }
}
