/**
 * Serves /v1/account/top-ups, where a customer pays and stores a card for automatic top-ups. Creates Checkout Sessions at Stripe that carry
 * a reference signed by this relay. Must never credit: only the webhook credits what Stripe reports as paid. Must never quote Stripe.
 * https://docs.stripe.com/api/checkout/sessions/create
 */
import {
  changeTopUp,
  convertFen,
  createAutoTopUp,
  fenDecimals,
  isOn,
  isCoveredByConsent,
  turnOff,
  type AutoTopUp,
  type AutoTopUpTerms,
} from '../../billing/auto-top-up.ts';
import { parseDecimal, parseYuan, type NanoYuan } from '../../billing/money.ts';
import {
  findLeastPayment,
  formatReferenceBody,
  referenceLengthMax,
  formatTextToSign,
  addSignature,
} from '../../billing/payments.ts';
import { buyMonth } from '../../billing/plan-sale.ts';
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { CheckoutSettings, Settings, StripeSettings } from '../../config/settings.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { isRecord, textIn } from '../../wire/json.ts';
import type { AutoTopUpBody, TopUpsBody } from '../../wire/public-api.ts';
import type { AdmittedKey } from '../call/access.ts';
import type { RelayRequest } from '../http/http.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
import type { AutoTopUpStore } from '../ports/alerts.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import { refusalAgeMsMax, SecretUnusable } from '../ports/config-store.ts';
import type { Hmac, Random } from '../ports/host.ts';
import { askStripe, isUnknown } from '../stripe-api.ts';
import { checkNames, refuseField } from './made-key.ts';

export interface TopUpPorts extends Pick<ChatPorts, 'clock' | 'config' | 'secrets' | 'transport' | 'log'> {
  hmac: Hmac;
  random: Random & { secretKey(): string; hex(bytes: number): string };
  topUps: AutoTopUpStore;
}

/** The request of a key, with the row of that key. */
export interface KeyRequest {
  admitted: AdmittedKey;
  request: RelayRequest;
  body: Record<string, unknown>;
}

/** In yuan. Below the least, Stripe refuses some currencies. */
const least = 5;
const most = 50_000;
const monthlyMost = 1_000_000;

export const describeTopUpOffer = ({ payments, topUpUrl }: Settings): 'checkout' | 'link' | null => {
  if (payments?.stripe.checkout) return 'checkout';
  return topUpUrl === undefined ? null : 'link';
};

const readFen = (value: unknown, name: string, [from, to]: readonly [number, number]): number => {
  const fen = typeof value === 'number' ? parseDecimal(value, fenDecimals, true) : undefined;
  if (fen !== undefined && fen >= BigInt(from) * 100n && fen <= BigInt(to) * 100n) return Number(fen);
  throw refuseField(
    name,
    `${name} must be a number of yuan from ${from} to ${to}, with ${fenDecimals} decimals at most.`,
  );
};

export async function topUp(ports: TopUpPorts, asked: KeyRequest): Promise<object> {
  checkNames(asked.body, ['amount', 'auto', 'plan']);
  const { amount, auto, plan } = asked.body;
  const { account } = asked.admitted.row;
  if (auto === null) {
    const after = await ports.topUps.change(account, (before) => before && turnOff(before));
    return { auto: describeAutoTopUp(after) };
  }
  if (plan !== undefined) return buyPlan(ports, asked, plan);
  const fen = readFen(amount, 'amount', [least, most]);
  const { settings } = await ports.config.notOlderThan(refusalAgeMsMax);
  const stripe = settings.payments?.stripe;
  if (stripe?.checkout) {
    const paying = { ...stripe, checkout: stripe.checkout };
    if (auto === undefined)
      return { url: await checkoutUrl(ports, asked, paying, { yuan: convertFen(fen) }) };
    return startAutoTopUp(ports, asked, paying, fen);
  }
  if (settings.topUpUrl === undefined || auto !== undefined) throw refuseTopUp();
  return { url: settings.topUpUrl.replaceAll('{account}', encodeURIComponent(account)) };
}

const refuseTopUp = (): Refusal =>
  refuse('top_up_not_offered', 'This account cannot be topped up here. Ask the operator of the relay.');

/** Lists the plan levels for sale that may follow the account's current plan. */
const listPlansForSale = ({ plans, settings }: Snapshot, account: AccountRow | undefined, nowMs: number) =>
  !settings.subscriptionEnabled || !account
    ? []
    : plans
        .filter(({ level, price }) => settings.payments?.stripe.checkout?.plans?.includes(level) && price > 0)
        .filter(({ level }) => typeof buyMonth(account.plan, level, nowMs) !== 'string')
        .map(({ level, price }) => ({ level, price }));

/** The reference contains level and price, so later edits of the plan's row do not affect this checkout. */
async function buyPlan(ports: TopUpPorts, asked: KeyRequest, wanted: unknown): Promise<object> {
  checkNames(asked.body, ['plan']);
  const snapshot = await ports.config.notOlderThan(refusalAgeMsMax);
  const offered = listPlansForSale(snapshot, asked.admitted.account, ports.clock.now());
  const plan = offered.find(({ level }) => level === wanted);
  const stripe = snapshot.settings.payments?.stripe;
  const yuan = plan && parseYuan(plan.price);
  if (!plan || !yuan || !stripe?.checkout) throw refuseTopUp();
  const paying = { ...stripe, checkout: stripe.checkout };
  return { url: await checkoutUrl(ports, asked, paying, { yuan, level: plan.level }) };
}

export async function showTopUps(
  { config, topUps, clock }: TopUpPorts,
  { admitted: { row, account } }: KeyRequest,
): Promise<TopUpsBody> {
  const snapshot = await config.current();
  const { settings } = snapshot;
  const isOffered = settings.payments?.stripe.checkout?.autoTopUp && account?.auto_top_up !== false;
  return {
    object: 'top_ups',
    top_up: describeTopUpOffer(settings),
    auto_offered: isOffered === true,
    auto: describeAutoTopUp(await topUps.find(row.account)),
    plans: listPlansForSale(snapshot, account, clock.now()),
  };
}

/** Never shows the card's ids. */
const describeAutoTopUp = (auto: AutoTopUp | undefined): AutoTopUpBody | null =>
  auto === undefined || (!isOn(auto) && !auto.off)
    ? null
    : {
        on: isOn(auto),
        off_reason: auto.off ?? null,
        below: auto.terms ? auto.terms.below / 100 : null,
        amount: auto.terms ? auto.terms.amount / 100 : null,
        monthly_limit: auto.terms ? auto.terms.monthly / 100 : null,
        charged: { month: auto.month, amount: auto.charged / 100 },
        pending: auto.pending !== undefined,
      };

/** The first payment stores the card. Terms within the agreed ones apply at once. */
async function startAutoTopUp(
  ports: TopUpPorts,
  asked: KeyRequest,
  paying: PaymentTerms,
  fen: number,
): Promise<object> {
  const { admitted, body } = asked;
  if (!paying.checkout.autoTopUp || admitted.account?.auto_top_up === false) throw refuseTopUp();
  if (!isRecord(body['auto'])) throw refuseField('auto', 'auto must be an object, or null to turn it off.');
  checkNames(body['auto'], ['below', 'monthly_limit']);
  const { below, monthly_limit: monthly } = body['auto'];
  const terms: AutoTopUpTerms = {
    amount: fen,
    // At most the amount, so that one top-up lifts the balance above it, even before the bonus is credited.
    below: readFen(below, 'below', [1, fen / 100]),
    monthly: readFen(monthly, 'monthly_limit', [fen / 100, monthlyMost]),
  };
  const nonce = ports.random.hex(8);
  const { account } = admitted.row;
  const after = await ports.topUps.change(account, (before = createAutoTopUp(account)) =>
    isOn(before) && before.terms && isCoveredByConsent(terms, before.terms)
      ? changeTopUp(before, { terms, wanted: undefined })
      : changeTopUp(before, { wanted: { ...terms, nonce } }),
  );
  if (!after?.wanted) return { auto: describeAutoTopUp(after) };
  return {
    url: await checkoutUrl(ports, asked, paying, { yuan: convertFen(fen), storing: { nonce, terms } }),
  };
}

type PaymentTerms = StripeSettings & { checkout: CheckoutSettings };

interface Purchase {
  yuan: NanoYuan;
  /** Set for a month of this plan instead of balance. */
  level?: number;
  storing?: { nonce: string; terms: AutoTopUpTerms };
}

async function checkoutUrl(
  ports: TopUpPorts,
  { admitted, request }: KeyRequest,
  { checkout, rates, linkSecrets, live }: PaymentTerms,
  { yuan, level, storing }: Purchase,
): Promise<string> {
  const { currency } = checkout;
  const paid = findLeastPayment(yuan, currency, rates[currency] ?? '');
  const { account } = admitted.row;
  const body = formatReferenceBody({ account, ...paid, nonce: storing?.nonce ?? ports.random.hex(8) });
  // A payment for an account without a row would wait for an operator, and Stripe drops references that are too long.
  if (!admitted.account || addSignature(body, 'f'.repeat(64), level).length > referenceLengthMax)
    throw refuseTopUp();
  const signer = await ports.secrets.read(linkSecrets.at(-1) ?? '').catch((error: unknown) => {
    throw error instanceof SecretUnusable ? refuseFailedTopUp('secret') : refuseBusy('reply');
  });
  const reference = addSignature(body, ports.hmac.sign(signer, formatTextToSign(body, level)), level);
  const accountPage = request.baseUrl.replace(/v1$/, 'account');
  const form = new URLSearchParams({
    mode: 'payment',
    client_reference_id: reference,
    success_url: `${accountPage}?top_up=done`,
    cancel_url: `${accountPage}?top_up=cancelled`,
    'adaptive_pricing[enabled]': 'false',
    'line_items[0][quantity]': '1',
    'line_items[0][price_data][currency]': currency,
    'line_items[0][price_data][unit_amount]': String(paid.minor),
    'line_items[0][price_data][product_data][name]': level ? `Plan ${level}, one month` : 'Balance',
    ...(storing && describeStoring(account, reference, storing.terms)),
  });
  const path = '/v1/checkout/sessions';
  // Both tries use the request's id, so that Stripe creates one session.
  const idempotencyKey = `relay-${request.id}`;
  const reply = await askStripe(ports, { checkout, path, form: form.toString(), idempotencyKey });
  if ('failure' in reply)
    throw reply.failure === 'secret' ? refuseFailedTopUp('secret') : refuseBusy(reply.failure);
  const { status, json: session } = reply;
  if (isUnknown(reply)) throw refuseBusy(String(status));
  if (status !== 200) throw refuseFailedTopUp(String(status));
  // A key of another mode makes sessions that the webhook would not credit.
  if (session['livemode'] !== live || session['client_reference_id'] !== reference)
    throw refuseFailedTopUp('other_session');
  const address = URL.parse(textIn(session['url']));
  if (address?.protocol !== 'https:') throw refuseFailedTopUp('url');
  return address.href;
}

/**
 * The reference in the payment's metadata proves, in `payment_intent.succeeded`, which account stored the card. The card's holder agrees to
 * the text, and may be another person than the one who opened the session.
 */
const describeStoring = (account: string, reference: string, { amount, below, monthly }: AutoTopUpTerms) => ({
  customer_creation: 'always',
  'payment_method_types[0]': 'card',
  'payment_intent_data[setup_future_usage]': 'off_session',
  'payment_intent_data[metadata][relay_reference]': reference,
  'custom_text[submit][message]': `This card is stored, and charged again for ¥${amount / 100} whenever the balance of the account ${account} is below ¥${below / 100}: at most ¥${monthly / 100} a month, until you turn it off.`,
});

/** Only the log shows the reason of a failure at Stripe, not the customer. */
const refuseBusy = (reason: string): Refusal =>
  refuse('unavailable', 'Payments are not available right now, and nothing was paid. Try again.', {
    headers: { 'retry-after': '5' },
    reason: `stripe_${reason}`,
  });
const refuseFailedTopUp = (reason: string): Refusal =>
  refuse('top_up_failed', 'The payment could not be started, and nothing was paid. Contact the operator.', {
    reason: `stripe_${reason}`,
  });
