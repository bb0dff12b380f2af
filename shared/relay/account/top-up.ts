/**
 * POST /v1/account/top-ups: where a customer pays. A Checkout Session at Stripe carries a reference that this relay signed, and the
 * webhook alone credits what it reports as paid: whatever is answered here moves no money. Never quotes Stripe.
 * https://docs.stripe.com/api/checkout/sessions/create
 */
import { parseDecimal } from '../../billing/price.ts';
import {
  decimalsOf,
  referenceBody,
  referenceLengthMax,
  signedReference,
  withSignature,
  yuanOf,
  type PaymentAmount,
} from '../../billing/payments.ts';
import type { CheckoutSettings, Settings, StripeSettings } from '../../config/settings.ts';
import { TransportError } from '../../upstreams/exchange.ts';
import { asRecord, parseJson, textIn } from '../../wire/json.ts';
import type { AdmittedKey } from '../call/read.ts';
import type { RelayRequest } from '../http/http.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
import { within } from '../money/backoff.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import { refusalAgeMsMax, SecretUnusable } from '../ports/config-store.ts';
import type { Hmac, Random } from '../ports/host.ts';
import { invalid, unknownField } from './made-key.ts';

export interface TopUpPorts extends Pick<ChatPorts, 'clock' | 'config' | 'secrets' | 'transport' | 'log'> {
  hmac: Hmac;
  random: Random & { secretKey(): string; hex(bytes: number): string };
}

interface TopUp {
  admitted: AdmittedKey;
  request: RelayRequest;
  body: Record<string, unknown>;
}

/** In yuan. Below the least, Stripe refuses some currencies. */
const least = 5;
const most = 50_000;
const fenDecimals = 2;
const nanoPerFen = 10_000_000n;

/** Which way there is. */
export const topUpOffer = ({ payments, topUpUrl }: Settings): 'checkout' | 'link' | null => {
  if (payments?.stripe.checkout) return 'checkout';
  return topUpUrl === undefined ? null : 'link';
};

export async function topUp(ports: TopUpPorts, asked: TopUp): Promise<{ url: string }> {
  const { amount, ...others } = asked.body;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw unknownField(unknown, ['amount']);
  const fen = typeof amount === 'number' ? parseDecimal(amount, fenDecimals, true) : undefined;
  if (fen === undefined || fen < BigInt(least) * 100n || fen > BigInt(most) * 100n)
    throw invalid(
      'amount',
      `amount must be a number of yuan from ${least} to ${most}, with ${fenDecimals} decimals at most.`,
    );
  const { settings } = await ports.config.notOlderThan(refusalAgeMsMax);
  const { account } = asked.admitted.row;
  const stripe = settings.payments?.stripe;
  if (stripe?.checkout)
    return { url: await checkoutUrl(ports, asked, { ...stripe, checkout: stripe.checkout, fen }) };
  if (settings.topUpUrl === undefined) throw notOffered();
  return { url: settings.topUpUrl.replaceAll('{account}', encodeURIComponent(account)) };
}

const notOffered = (): Refusal =>
  refuse('top_up_not_offered', 'This account cannot be topped up here. Ask the operator of the relay.');

type Paying = StripeSettings & { checkout: CheckoutSettings; fen: bigint };

/** Stripe answers within a second or two. */
const stripeMsMax = 10_000;

async function checkoutUrl(ports: TopUpPorts, asked: TopUp, paying: Paying): Promise<string> {
  const { row, account } = asked.admitted;
  const { currency } = paying.checkout;
  const paid = { minor: minorOf(paying), currency };
  const body = referenceBody({ account: row.account, ...paid, nonce: ports.random.hex(8) });
  // What is paid for an account without a row waits for an operator, and Stripe drops a reference that is too long.
  if (!account || withSignature(body, 'f'.repeat(64)).length > referenceLengthMax) throw notOffered();
  const abort = new AbortController();
  try {
    const work = openedSession(ports, {
      ...paying,
      paid,
      body,
      request: asked.request,
      signal: abort.signal,
    });
    const late = { failed: 'busy', reason: 'stripe_timeout' } as const;
    const session = await within(ports.clock, stripeMsMax, { work, late });
    if ('url' in session) return session.url;
    const { failed, reason } = session;
    throw failed === 'busy'
      ? refuse('unavailable', 'Payments do not answer right now, and nothing was paid. Try again.', {
          headers: { 'retry-after': '5' },
          reason,
        })
      : refuse('top_up_failed', 'The payment could not be begun, and nothing was paid. Tell the operator.', {
          reason,
        });
  } finally {
    abort.abort();
  }
}

/** The least amount that grants what was asked for: by less than one of its smallest unit more. */
function minorOf({ rates, checkout: { currency }, fen }: Paying): bigint {
  // Stripe takes no other amounts in currencies with three decimals.
  const step = decimalsOf(currency) === 3 ? 10n : 1n;
  const nano = yuanOf({ minor: step, currency }, rates[currency] ?? '');
  return ((fen * nanoPerFen + nano - 1n) / nano) * step;
}

type Session = { url: string } | { failed: 'busy' | 'refused'; reason: string };

interface SessionWanted extends Paying {
  paid: PaymentAmount;
  /** Of the reference, without its signature. */
  body: string;
  request: RelayRequest;
  signal: AbortSignal;
}

/** Never rejects. A second try has the id of the first, so that Stripe makes one session of both. */
async function openedSession(ports: TopUpPorts, wanted: SessionWanted): Promise<Session> {
  try {
    const { linkSecrets, checkout, body } = wanted;
    const signer = await ports.secrets.read(linkSecrets.at(-1) ?? '');
    const reference = withSignature(body, ports.hmac.sign(signer, signedReference(body)));
    const secretKey = await ports.secrets.read(checkout.secretKey);
    const tryOnce = (): Promise<Session> =>
      askedSession(ports, { ...wanted, reference, secretKey }).catch((error: unknown) => ({
        failed: 'busy',
        reason: error instanceof TransportError ? `stripe_${error.kind}` : 'stripe_reply',
      }));
    const first = await tryOnce();
    return 'failed' in first && first.failed === 'busy' ? await tryOnce() : first;
  } catch (error) {
    return {
      failed: 'refused',
      reason: error instanceof SecretUnusable ? 'stripe_secret' : 'stripe_secret_store',
    };
  }
}

const replyLengthMax = 256 * 1024;
const connectTimeoutMs = 3_000;

async function askedSession(
  { transport }: TopUpPorts,
  {
    checkout,
    live,
    paid,
    reference,
    request,
    secretKey,
    signal,
  }: SessionWanted & { reference: string; secretKey: string },
): Promise<Session> {
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
    authorization: `Bearer ${secretKey}`,
    'content-type': 'application/x-www-form-urlencoded',
    'idempotency-key': `relay-${request.id}`,
  };
  const url = `${checkout.endpoint}/v1/checkout/sessions`;
  const reply = await transport.send({ url, headers, body: form.toString(), connectTimeoutMs }, signal);
  const session = asRecord(parseJson(await textOf(reply.body)));
  const { status } = reply;
  if (status === 429 || status === 409 || status >= 500)
    return { failed: 'busy', reason: `stripe_${status}` };
  if (status !== 200) return { failed: 'refused', reason: `stripe_${status}` };
  // A key of another mode makes sessions that the webhook would not credit.
  if (session['livemode'] !== live || session['client_reference_id'] !== reference)
    return { failed: 'refused', reason: 'stripe_other_session' };
  const address = URL.parse(textIn(session['url']));
  if (address?.protocol !== 'https:') return { failed: 'refused', reason: 'stripe_url' };
  return { url: address.href };
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const part of body) {
    text += decoder.decode(part, { stream: true });
    if (text.length > replyLengthMax) throw new Error('too long');
  }
  return text;
}
