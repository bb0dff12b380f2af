/**
 * The scheduled call: does what a customer's first call does, through the public address, and says whether it was
 * answered. Must never throw: what it finds is a figure, and an error of its own would look like one of the relay's.
 */
import type { Clock, UpstreamTransport } from '../ports/host.ts';
import type { SecretStore } from '../ports/config-store.ts';
import { TransportError, type UpstreamRequest } from '../../upstreams/exchange.ts';

export interface CanarySettings {
  /** With `/v1`. */
  baseUrl: string;
  model: string;
  /** Reference of the key: `ssm:/relay/<stack>/canary/<name>`. */
  key: string;
}

export interface CanaryDeps {
  transport: UpstreamTransport;
  secrets: Pick<SecretStore, 'read'>;
  clock: Pick<Clock, 'now'>;
  /** Bounds each of the two requests. */
  deadline: () => AbortSignal;
}

/** `reason` is one word of ours, never text of an answer. */
export type CanaryResult = { ok: true; durationMs: number } | { ok: false; reason: string };

const connectTimeoutMs = 5_000;
/** An answer of a few tokens, and a list of a thousand models. */
const bytesMax = 1_000_000;

export function canary(parts: CanaryDeps, settings: CanarySettings): () => Promise<CanaryResult> {
  return async () => {
    const startedAtMs = parts.clock.now();
    try {
      const key = await parts.secrets.read(settings.key).catch(() => undefined);
      if (key === undefined) return { ok: false, reason: 'no_key' };
      const reason = await faultOf(parts, settings, key);
      if (reason !== undefined) return { ok: false, reason };
      return { ok: true, durationMs: parts.clock.now() - startedAtMs };
    } catch (error) {
      return { ok: false, reason: isTimeOut(error) ? 'timeout' : 'connection' };
    }
  };
}

/** The deadline of a request alone aborts it. */
const isTimeOut = (error: unknown): boolean =>
  error instanceof TransportError && (error.kind === 'aborted' || error.fault === 'timeout');

/** One word for what went wrong. */
async function faultOf(
  parts: CanaryDeps,
  { baseUrl, model }: CanarySettings,
  key: string,
): Promise<string | undefined> {
  const list = await exchange(parts, key, { method: 'GET', url: `${baseUrl}/models`, body: '' });
  if (list.status !== 200) return `models_status_${list.status}`;
  if (!list.text.includes(JSON.stringify(model))) return 'model_not_listed';
  const messages = [{ role: 'user', content: 'Say OK.' }];
  const body = JSON.stringify({ model, messages, max_tokens: 16, stream: true });
  const answer = await exchange(parts, key, { method: 'POST', url: `${baseUrl}/chat/completions`, body });
  if (answer.status !== 200) return `answer_status_${answer.status}`;
  if (answer.text.includes('"error":{')) return 'answer_failed';
  return answer.text.includes('data: [DONE]') ? undefined : 'answer_cut';
}

async function exchange(
  { transport, deadline }: CanaryDeps,
  key: string,
  asked: Pick<UpstreamRequest, 'method' | 'url' | 'body'>,
): Promise<{ status: number; text: string }> {
  const headers = {
    authorization: `Bearer ${key}`,
    'user-agent': 'relay-canary',
    ...(asked.method === 'POST' && { 'content-type': 'application/json' }),
  };
  const reply = await transport.send({ ...asked, headers, connectTimeoutMs }, deadline());
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of reply.body) {
    text += decoder.decode(bytes, { stream: true });
    if (text.length > bytesMax) break;
  }
  return { status: reply.status, text };
}
