/**
 * POST /v1/account/top-ups: where a customer pays. A Checkout Session at Stripe carries a reference that this relay signed, and the
 * webhook alone credits what it reports as paid: whatever is answered here moves no money. Never quotes Stripe.
 * https://docs.stripe.com/api/checkout/sessions/create
 */
import { parseDecimal } from '../../billing/money.ts';
import {
  decimalsOf,
  formatReferenceBody,
  referenceLengthMax,
  formatTextToSign,
  addSignature,
  convertToYuan,
  type PaymentAmount,
} from '../../billing/payments.ts';
import type { CheckoutSettings, Settings, StripeSettings } from '../../config/settings.ts';
import { hostOf } from '../../upstreams/endpoint-rules.ts';
import { TransportError } from '../../upstreams/exchange.ts';
import { asRecord, parseJson, textIn } from '../../wire/json.ts';
import type { AdmittedKey } from '../call/access.ts';
import type { RelayRequest } from '../http/http.ts';
import { refuse, Refusal } from '../http/refusal.ts';
import { within } from '../retry.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import { refusalAgeMsMax, SecretUnusable } from '../ports/config-store.ts';
import type { Hmac, Random } from '../ports/host.ts';
import { checkNames, refuseField } from './made-key.ts';

export interface TopUpPorts extends Pick<ChatPorts, 'clock' | 'config' | 'secrets' | 'transport' | 'log'> {
  hmac: Hmac;
  random: Random & { secretKey(): string; hex(bytes: number): string };
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
const fenDecimals = 2;
const nanoPerFen = 10_000_000n;

/** The way of payment that the settings offer. */
export const describeTopUpOffer = ({ payments, topUpUrl }: Settings): 'checkout' | 'link' | null => {
  if (payments?.stripe.checkout) return 'checkout';
  return topUpUrl === undefined ? null : 'link';
};

export async function topUp(ports: TopUpPorts, asked: KeyRequest): Promise<{ url: string }> {
  checkNames(asked.body, ['amount']);
  const { amount } = asked.body;
  const fen = typeof amount === 'number' ? parseDecimal(amount, fenDecimals, true) : undefined;
  if (fen === undefined || fen < BigInt(least) * 100n || fen > BigInt(most) * 100n)
    throw refuseField(
      'amount',
      `amount must be a number of yuan from ${least} to ${most}, with ${fenDecimals} decimals at most.`,
    );
  const { settings } = await ports.config.notOlderThan(refusalAgeMsMax);
  const { account } = asked.admitted.row;
  const stripe = settings.payments?.stripe;
  if (stripe?.checkout)
    return { url: await checkoutUrl(ports, asked, { ...stripe, checkout: stripe.checkout, fen }) };
  if (settings.topUpUrl === undefined) throw refuseTopUp();
  return { url: settings.topUpUrl.replaceAll('{account}', encodeURIComponent(account)) };
}

const refuseTopUp = (): Refusal =>
  refuse('top_up_not_offered', 'This account cannot be topped up here. Ask the operator of the relay.');

type Paying = StripeSettings & { checkout: CheckoutSettings; fen: bigint };

/** Stripe answers within a second or two. */
const stripeMsMax = 10_000;

async function checkoutUrl(ports: TopUpPorts, asked: KeyRequest, paying: Paying): Promise<string> {
  const { admitted, request } = asked;
  const { currency } = paying.checkout;
  const paid = { minor: minorOf(paying), currency };
  const body = formatReferenceBody({ account: admitted.row.account, ...paid, nonce: ports.random.hex(8) });
  // A payment for an account without a row waits for an operator, and Stripe drops a reference that is too long.
  if (!admitted.account || addSignature(body, 'f'.repeat(64)).length > referenceLengthMax)
    throw refuseTopUp();
  const abort = new AbortController();
  const tryOnce = (): Promise<string> =>
    openSession(ports, { ...paying, paid, body, request, signal: abort.signal });
  const work = async (): Promise<string> => {
    try {
      return await tryOnce();
    } catch (error) {
      if (error instanceof SecretUnusable || (error instanceof Refusal && error.status !== 503)) throw error;
      // With the id of the first, so that Stripe makes one session of both.
      return tryOnce();
    }
  };
  try {
    const url = await within(ports.clock, stripeMsMax, { work: work(), late: undefined });
    if (url === undefined) throw busy('timeout');
    return url;
  } catch (error) {
    if (error instanceof Refusal) throw error;
    if (error instanceof SecretUnusable) throw refuseFailedTopUp('secret');
    throw busy(error instanceof TransportError ? error.kind : 'reply');
  } finally {
    abort.abort();
  }
}

/** The log has the reason of a failure at Stripe; the customer does not see it. */
const busy = (reason: string): Refusal =>
  refuse('unavailable', 'Payments do not answer right now, and nothing was paid. Try again.', {
    headers: { 'retry-after': '5' },
    reason: `stripe_${reason}`,
  });
const refuseFailedTopUp = (reason: string): Refusal =>
  refuse('top_up_failed', 'The payment could not be begun, and nothing was paid. Tell the operator.', {
    reason: `stripe_${reason}`,
  });

/** The least amount that grants what was asked for: by less than one of its smallest unit more. */
function minorOf({ rates, checkout: { currency }, fen }: Paying): bigint {
  // Stripe takes no other amounts in currencies with three decimals.
  const step = decimalsOf(currency) === 3 ? 10n : 1n;
  const nano = convertToYuan({ minor: step, currency }, rates[currency] ?? '');
  return ((fen * nanoPerFen + nano - 1n) / nano) * step;
}

interface SessionWanted extends Paying {
  paid: PaymentAmount;
  /** The length of the reference without its signature. */
  body: string;
  request: RelayRequest;
  signal: AbortSignal;
}

const connectTimeoutMs = 3_000;

/** @returns its address. Throws a Refusal, or what secrets and transport throw. */
async function openSession(
  { hmac, secrets, transport }: TopUpPorts,
  { linkSecrets, checkout, live, paid, body, request, signal }: SessionWanted,
): Promise<string> {
  const signer = await secrets.read(linkSecrets.at(-1) ?? '');
  const reference = addSignature(body, hmac.sign(signer, formatTextToSign(body)));
  const accountPage = request.baseUrl.replace(/v1$/, 'account');
  const form = new URLSearchParams({
    mode: 'payment',
    client_reference_id: reference,
    success_url: `${accountPage}?top_up=done`,
    cancel_url: `${accountPage}?top_up=cancelled`,
    'adaptive_pricing[enabled]': 'false',
    'line_items[0][quantity]': '1',
    'line_items[0][price_data][currency]': paid.currency,
    'line_items[0][price_data][unit_amount]': String(paid.minor),
    'line_items[0][price_data][product_data][name]': 'Balance',
  });
  const headers = {
    authorization: `Bearer ${await secrets.read(checkout.secretKey, hostOf(checkout.endpoint))}`,
    'content-type': 'application/x-www-form-urlencoded',
    'idempotency-key': `relay-${request.id}`,
  };
  const url = `${checkout.endpoint}/v1/checkout/sessions`;
  const reply = await transport.send({ url, headers, body: form.toString(), connectTimeoutMs }, signal);
  const session = asRecord(parseJson(await textOf(reply.body)));
  const { status } = reply;
  if (status === 429 || status === 409 || status >= 500) throw busy(String(status));
  if (status !== 200) throw refuseFailedTopUp(String(status));
  // A key of another mode makes sessions that the webhook would not credit.
  if (session['livemode'] !== live || session['client_reference_id'] !== reference)
    throw refuseFailedTopUp('other_session');
  const address = URL.parse(textIn(session['url']));
  if (address?.protocol !== 'https:') throw refuseFailedTopUp('url');
  return address.href;
}

const replyLengthMax = 256 * 1024;

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of body) {
    text += decoder.decode(part, { stream: true });
    if (text.length > replyLengthMax) throw new Error('too long');
  }
  return text;
}
