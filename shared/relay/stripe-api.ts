/**
 * Sends one request to Stripe's API. If the outcome is unknown, sends it once more with the same idempotency key, so that Stripe acts only
 * once. Never quote the reply to customers.
 * https://docs.stripe.com/api/idempotent_requests
 */
import type { CheckoutSettings } from '../config/settings.ts';
import { hostOf } from '../upstreams/endpoint-rules.ts';
import { TransportError } from '../upstreams/exchange.ts';
import { asRecord, parseJson, type JsonRecord } from '../wire/json.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import { SecretUnusable } from './ports/config-store.ts';
import { within } from './retry.ts';

type StripePorts = Pick<ChatPorts, 'clock' | 'transport'> & { secrets: Pick<ChatPorts['secrets'], 'read'> };

interface StripeRequest {
  checkout: CheckoutSettings;
  path: string;
  form: string;
  idempotencyKey: string;
}

/** `failure`: why there is no reply, in one word. With `secret`, nothing was sent. */
export type StripeReply = { status: number; json: JsonRecord } | { failure: string };

/** Stripe answers within a second or two. */
const stripeMsMax = 10_000;

/** Never rejects. */
export async function askStripe(ports: StripePorts, request: StripeRequest): Promise<StripeReply> {
  const abort = new AbortController();
  const tryOnce = (): Promise<StripeReply> =>
    sendOnce(ports, request, abort.signal).catch((error: unknown) => ({ failure: nameFailure(error) }));
  const work = async (): Promise<StripeReply> => {
    const reply = await tryOnce();
    return isUnknown(reply) ? tryOnce() : reply;
  };
  try {
    return await within(ports.clock, stripeMsMax, { work: work(), late: { failure: 'timeout' } });
  } finally {
    abort.abort();
  }
}

/** True if Stripe may have carried out the request, or still may. */
export const isUnknown = (reply: StripeReply): boolean =>
  'failure' in reply
    ? reply.failure !== 'secret'
    : reply.status === 429 || reply.status === 409 || reply.status >= 500;

function nameFailure(error: unknown): string {
  if (error instanceof SecretUnusable) return 'secret';
  return error instanceof TransportError ? error.kind : 'reply';
}

const connectTimeoutMs = 3_000;

async function sendOnce(
  { secrets, transport }: StripePorts,
  { checkout, path, form, idempotencyKey }: StripeRequest,
  signal: AbortSignal,
): Promise<StripeReply> {
  const headers = {
    authorization: `Bearer ${await secrets.read(checkout.secretKey, hostOf(checkout.endpoint))}`,
    'content-type': 'application/x-www-form-urlencoded',
    'idempotency-key': idempotencyKey,
  };
  const url = `${checkout.endpoint}${path}`;
  const { status, body } = await transport.send({ url, headers, body: form, connectTimeoutMs }, signal);
  return { status, json: asRecord(parseJson(await textOf(body))) };
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
