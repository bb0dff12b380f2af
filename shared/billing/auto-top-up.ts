/**
 * Automatic top-up of an account from a card that its customer stored at Stripe. Every step is one write, if the version is unchanged, so
 * only one of many callers charges. `pending` ends when the grant is in the ledger, so the balance read next includes it:
 *
 *     off --ask--> wanted --payment with the nonce stores the card, and is pending--> on
 *     on --balance below, month has room--> pending --grant in the ledger--> on
 *     on or pending --decline, dispute, refund, a day without a credit, the customer--> off
 */

import type { NanoYuan } from './money.ts';

export const fenDecimals = 2;
export const convertFen = (fen: number | bigint): NanoYuan => BigInt(fen) * 10_000_000n;

/** Amounts are in fen. */
export interface AutoTopUpTerms {
  /** A lower balance starts a top-up. */
  below: number;
  amount: number;
  /** The most to charge in a calendar month (UTC). */
  monthly: number;
}

export interface StoredCard {
  customer: string;
  method: string;
}

export interface AutoTopUp {
  account: string;
  version: number;
  terms?: AutoTopUpTerms | undefined;
  card?: StoredCard | undefined;
  /** Terms that become valid when the payment with this nonce in its reference stores a card. */
  wanted?: (AutoTopUpTerms & { nonce: string }) | undefined;
  /** Why it was turned off; missing if the customer turned it off. */
  off?: AutoTopUpFailure | undefined;
  /** The notice of `off` was sent. */
  told?: boolean | undefined;
  /** The last month for which the notice of a reached limit was sent. */
  limitTold?: string | undefined;
  month: string;
  /** Charged in `month`. */
  charged: number;
  pending?: PendingTopUp | undefined;
}

export interface PendingTopUp {
  atMs: number;
  /** No other caller asks Stripe before this time. */
  dueMs: number;
  /** The form sent to Stripe: a repeat with the same idempotency key must be the same to the byte. */
  form: string;
  /** Stripe's id, once it is known. */
  payment?: string | undefined;
}

export type AutoTopUpFailure =
  | 'declined'
  | 'authentication_required'
  | 'rejected'
  | 'unconfirmed'
  | 'disputed'
  | 'refunded';

/** Stripe keeps an idempotency key for at least 24 hours. After that, a retry could charge again. */
const repeatableMs = 23 * 3_600_000;
/** Longer than both tries of one charge take. */
const claimMs = 60_000;

/** Creates the next version. */
export const changeTopUp = (auto: AutoTopUp, changes: Partial<AutoTopUp>): AutoTopUp => ({
  ...auto,
  ...changes,
  version: auto.version + 1,
});

/** The id of the account's item in `runtime`. */
export const buildAutoTopUpId = (account: string): string => `auto-top-up#${account}`;

export const createAutoTopUp = (account: string): AutoTopUp => ({
  account,
  version: 0,
  month: '',
  charged: 0,
});

export const isOn = ({ terms, card }: AutoTopUp): boolean => terms !== undefined && card !== undefined;

/** Terms that charge more than the card's holder agreed to at Stripe need a new payment there. */
export const isCoveredByConsent = (terms: AutoTopUpTerms, agreed: AutoTopUpTerms): boolean =>
  terms.below <= agreed.below && terms.amount <= agreed.amount && terms.monthly <= agreed.monthly;

/** Returns nothing unless the account asked for this payment last, so that a repeated event can't turn top-ups on again. */
export function storeCard(
  auto: AutoTopUp | undefined,
  { nonce, card, payment, nowMs }: { nonce: string; card: StoredCard; payment: string; nowMs: number },
): AutoTopUp | undefined {
  if (auto?.wanted?.nonce !== nonce) return undefined;
  const { nonce: _, ...terms } = auto.wanted;
  const pending = auto.pending ?? { atMs: nowMs, dueMs: nowMs, form: '', payment };
  return changeTopUp(auto, { terms, card, pending, wanted: undefined, off: undefined, told: undefined });
}

/** Forgets the card. The charges of the month still count. */
export const turnOff = (
  { account, version, month, charged }: AutoTopUp,
  off?: AutoTopUpFailure,
): AutoTopUp => ({ account, version: version + 1, month, charged, off });

export const hasRoom = ({ terms, month, charged }: AutoTopUp, thisMonth: string): boolean =>
  terms !== undefined && (month === thisMonth ? charged : 0) + terms.amount <= terms.monthly;

/** Counts the charge in the same write, so concurrent callers can't exceed the monthly limit. */
export function startTopUp(
  auto: AutoTopUp,
  { month, form, nowMs }: { month: string; form: string; nowMs: number },
) {
  const charged = (auto.month === month ? auto.charged : 0) + (auto.terms?.amount ?? 0);
  const pending = { atMs: nowMs, dueMs: nowMs + claimMs, form };
  return changeTopUp(auto, { month, charged, pending });
}

/** Decides about a pending top-up whose grant the ledger lacks. */
export function resumeTopUp(auto: AutoTopUp, pending: PendingTopUp, nowMs: number): AutoTopUp | 'wait' {
  if (nowMs - pending.atMs > repeatableMs) return turnOff(auto, 'unconfirmed');
  if (pending.payment !== undefined || nowMs < pending.dueMs) return 'wait';
  return changeTopUp(auto, { pending: { ...pending, dueMs: nowMs + claimMs } });
}
