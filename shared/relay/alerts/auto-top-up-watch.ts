/**
 * Charges the stored card of an account when its balance is low, and reports why it stopped: docs/payments.md#automatic-top-ups. Asks
 * Stripe only after a conditional write marked the top-up as pending, so concurrent callers never charge twice. Must never credit: only
 * Stripe's webhook does.
 * https://docs.stripe.com/payments/save-and-reuse
 */
import {
  changeTopUp,
  convertFen,
  hasRoom,
  resumeTopUp,
  startTopUp,
  turnOff,
  type AutoTopUp,
  type AutoTopUpTerms,
  type PendingTopUp,
  type StoredCard,
} from '../../billing/auto-top-up.ts';
import { formatYuan } from '../../billing/money.ts';
import {
  addSignature,
  findLeastPayment,
  formatReferenceBody,
  formatTextToSign,
} from '../../billing/payments.ts';
import type { CheckoutSettings, Settings, StripeSettings } from '../../config/settings.ts';
import { utcMonth } from '../../wire/iso-time.ts';
import { asRecord } from '../../wire/json.ts';
import type { Notice } from '../../wire/public-api.ts';
import type { AlertAccounts, AutoTopUpStore } from '../ports/alerts.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { Hmac } from '../ports/host.ts';
import type { QuotaChange } from '../ports/money-stores.ts';
import { askStripe, isUnknown, type StripeReply } from '../stripe-api.ts';
import { accountOfShard, createNotice, isWorthALook, type NoticeInput } from './balance-watch.ts';

interface AutoTopUpPorts extends Pick<ChatPorts, 'clock' | 'transport' | 'log'>, Pick<NoticeInput, 'ids'> {
  accounts: Pick<AlertAccounts, 'row' | 'balance'>;
  topUps: AutoTopUpStore;
  settings: () => Promise<Pick<Settings, 'payments'>>;
  secrets: Pick<ChatPorts['secrets'], 'read'>;
  hmac: Hmac;
  hex: (bytes: number) => string;
}

export type AutoTopUpWatch = ReturnType<typeof autoTopUpWatch>;

export const autoTopUpWatch = (ports: AutoTopUpPorts) => ({
  look: (account: string): Promise<void> => topUpIfLow(ports, account),
  active: (accounts: readonly string[]): Promise<string[]> => ports.topUps.listActive(accounts),
  /** Accepts changes in any order and repeatedly. */
  take: async (change: QuotaChange): Promise<void> => {
    const account = accountOfShard(change.account);
    const below = await ports.topUps.below(account);
    // The grant may come from the payment that stored the card. The cached limit may be too old to show it.
    const isGrant = change.before?.granted !== change.after?.granted;
    if (isGrant || (below !== undefined && isWorthALook(change, below))) await topUpIfLow(ports, account);
  },
});

interface Step {
  after: AutoTopUp;
  notice?: Pick<Notice, 'type' | 'data'>;
  charge?: PendingTopUp | undefined;
}

/** One pass may end a top-up, start the next, and report its failure. The next change or the hourly pass continues. */
const stepsMax = 6;

async function topUpIfLow(ports: AutoTopUpPorts, account: string): Promise<void> {
  for (let steps = 0; steps < stepsMax; steps += 1) {
    const auto = await ports.topUps.find(account);
    const step = auto && (await findStep(ports, auto));
    if (!step) return;
    const { after, notice, charge } = step;
    const isWritten = await ports.topUps.write(after, notice && createNotice(ports, { ...notice, account }));
    if (isWritten && charge) await chargeCard(ports, after, charge);
  }
}

async function findStep(ports: AutoTopUpPorts, auto: AutoTopUp): Promise<Step | undefined> {
  const { account, terms, card, pending, off } = auto;
  if (off !== undefined && !auto.told)
    return {
      after: changeTopUp(auto, { told: true }),
      notice: { type: 'auto_top_up.off', data: { reason: off } },
    };
  if (!terms || !card) return undefined;
  const nowMs = ports.clock.now();
  if (!pending) return findStart(ports, auto, { terms, card });
  if (pending.payment !== undefined && (await ports.topUps.isCredited(account, pending.payment)))
    return { after: changeTopUp(auto, { pending: undefined }) };
  const after = resumeTopUp(auto, pending, nowMs);
  if (after === 'wait') return undefined;
  // Check again: the operator may have stopped charges since the first try, which may never have reached Stripe.
  if (after.pending && !(await ports.accounts.row(account))?.mayTopUp) return undefined;
  return { after, charge: after.pending };
}

async function findStart(
  ports: AutoTopUpPorts,
  auto: AutoTopUp,
  { terms, card }: { terms: AutoTopUpTerms; card: StoredCard },
): Promise<Step | undefined> {
  const { account } = auto;
  const { accounts, clock } = ports;
  const [row, balance] = await Promise.all([accounts.row(account), accounts.balance(account)]);
  if (!row?.mayTopUp || balance === undefined || balance >= convertFen(terms.below)) return undefined;
  const nowMs = clock.now();
  const month = utcMonth(nowMs);
  if (!hasRoom(auto, month)) {
    if (auto.limitTold === month) return undefined;
    const data = { month, balance: formatYuan(balance), monthly_limit: terms.monthly / 100 };
    return { after: changeTopUp(auto, { limitTold: month }), notice: { type: 'auto_top_up.limit', data } };
  }
  const stripe = (await ports.settings()).payments?.stripe;
  if (!stripe?.checkout?.autoTopUp) return undefined;
  const form = await composeCharge(ports, { ...stripe, checkout: stripe.checkout, account, terms, card });
  const after = startTopUp(auto, { month, form, nowMs });
  return { after, charge: after.pending };
}

interface ChargeInput extends StripeSettings {
  checkout: CheckoutSettings;
  account: string;
  terms: AutoTopUpTerms;
  card: StoredCard;
}

const reference = 'metadata[relay_reference]';

async function composeCharge(
  { secrets, hmac, hex }: AutoTopUpPorts,
  { account, checkout: { currency }, rates, linkSecrets, terms, card }: ChargeInput,
): Promise<string> {
  const paid = findLeastPayment(convertFen(terms.amount), currency, rates[currency] ?? '');
  const body = formatReferenceBody({ account, ...paid, nonce: hex(8) });
  const signer = await secrets.read(linkSecrets.at(-1) ?? '');
  return new URLSearchParams({
    amount: String(paid.minor),
    currency,
    customer: card.customer,
    payment_method: card.method,
    'payment_method_types[0]': 'card',
    off_session: 'true',
    confirm: 'true',
    description: 'Automatic top-up',
    [reference]: addSignature(body, hmac.sign(signer, formatTextToSign(body))),
  }).toString();
}

/** A lost or unclear reply leaves the top-up pending, and a later pass sends the same request again. */
async function chargeCard(ports: AutoTopUpPorts, auto: AutoTopUp, { form }: PendingTopUp): Promise<void> {
  const stripe = (await ports.settings()).payments?.stripe;
  if (!stripe?.checkout?.autoTopUp) return;
  const reply = await askStripe(ports, {
    checkout: stripe.checkout,
    path: '/v1/payment_intents',
    form,
    // The form, with the reference, is stored before the charge, so every retry has the same key.
    idempotencyKey: `relay-auto-${new URLSearchParams(form).get(reference)}`,
  });
  const after = readReply(auto, reply, stripe.live);
  const outcome = after ? (after.off ?? 'charged') : 'unknown';
  const why = 'failure' in reply ? reply.failure : String(reply.status);
  ports.log.event('auto_top_up', { account: auto.account, outcome, reply: why });
  if (after) await ports.topUps.write(after);
}

/** A decline is final: only the card's holder can start again, at Stripe. */
function readReply(auto: AutoTopUp, reply: StripeReply, live: boolean): AutoTopUp | undefined {
  if ('failure' in reply || isUnknown(reply)) return undefined;
  const { status, json } = reply;
  const { code, decline_code: declineCode } = asRecord(json['error']);
  const needsHolder = code === 'authentication_required' || declineCode === 'authentication_required';
  if (status === 402) return turnOff(auto, needsHolder ? 'authentication_required' : 'declined');
  if (status === 400) return turnOff(auto, 'rejected');
  // Nothing was charged: the operator's key is wrong.
  if (status !== 200) return undefined;
  const { id, status: state, livemode } = json;
  // The card may be charged: the same request is sent again.
  if (typeof id !== 'string') return undefined;
  if (livemode !== live) return turnOff(auto, 'rejected');
  return state === 'succeeded' || state === 'processing'
    ? changeTopUp(auto, { pending: auto.pending && { ...auto.pending, payment: id } })
    : turnOff(auto, 'declined');
}
