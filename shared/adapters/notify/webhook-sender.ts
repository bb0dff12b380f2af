/**
 * Posts notices to webhooks, signed. Follows the rules of a channel's endpoint: https, a public address, no redirects.
 * What a receiver answers is not read; must never log an address or a secret.
 */
import { createHmac } from 'node:crypto';
import type { Clock } from '../../relay/ports/clock.ts';
import type { NoticeTarget } from '../../relay/ports/alerts/notice-sender.ts';
import type { Notice } from '../../wire/public/notice.ts';
import type { SecretStore } from '../../relay/ports/stores/secret-store.ts';
import type { UpstreamTransport } from '../../relay/ports/upstream-transport.ts';
import { TransportError, type UpstreamRequest } from '../../upstreams/exchange.ts';

const timeoutMs = 10_000;

export interface WebhookParts {
  transport: UpstreamTransport;
  secrets: Pick<SecretStore, 'read'>;
  clock: Pick<Clock, 'now'>;
}

type Webhook = Extract<NoticeTarget, { kind: 'webhook' }>;

export async function postNotice(
  { transport, secrets, clock }: WebhookParts,
  { url, signs, account }: Webhook,
  notice: Notice,
): Promise<string | undefined> {
  let secret: string;
  try {
    secret = await secrets.read(signs);
  } catch {
    return 'no_secret';
  }
  const body = JSON.stringify(notice);
  const timestamp = String(Math.floor(clock.now() / 1000));
  const key = account === undefined ? secret : customerSecret(secret, account);
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'relay-notices',
    'x-relay-timestamp': timestamp,
    'x-relay-signature': `v1=${signature(key, `${timestamp}.${body}`)}`,
  };
  return sent(transport, { url, headers, body, connectTimeoutMs: timeoutMs });
}

/**
 * A customer's own secret, so that none can sign what another receives: the HMAC of `contact:<account>` under the
 * operators' secret, in hex.
 */
export const customerSecret = (secret: string, account: string): string =>
  signature(secret, `contact:${account}`);

const signature = (key: string, text: string): string => createHmac('sha256', key).update(text).digest('hex');

/** Sends once. Undefined: an answer of 2xx; else the reason in one word. */
export async function sent(
  transport: UpstreamTransport,
  request: UpstreamRequest,
): Promise<string | undefined> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const { status, body } = await transport.send(request, signal);
    await body[Symbol.asyncIterator]().return?.();
    return status >= 200 && status < 300 ? undefined : `status_${status}`;
  } catch (error) {
    if (signal.aborted) return 'timeout';
    return error instanceof TransportError ? error.kind : 'failed';
  }
}
