/** Calls an upstream from the operator's machine. */
import { Failure } from '../operator-failure.ts';

const shownCharactersMax = 300;

export interface UpstreamAnswer {
  status: number;
  ok: boolean;
  body: string;
}

export interface UpstreamCall {
  url: string;
  method: 'GET' | 'POST';
  headers: Record<string, string>;
  body?: string;
  timeoutMs: number;
}

/** Throws a Failure when there is no answer, without the secret. */
export async function callUpstream(call: UpstreamCall, secret: string | undefined): Promise<UpstreamAnswer> {
  const { url, timeoutMs, ...request } = call;
  const signal = AbortSignal.timeout(timeoutMs);
  const reply = await fetch(url, { ...request, redirect: 'manual', signal }).catch((error: unknown) => {
    throw new Failure(`no answer: ${cleanText(describeFetchError(error), secret)}`);
  });
  return { status: reply.status, ok: reply.ok, body: await reply.text().catch(() => '') };
}

/** Upstreams echo keys in their errors; a terminal must not obey what an upstream sends. */
export function cleanText(text: string, secret: string | undefined): string {
  const hidden = secret === undefined ? text : text.replaceAll(secret, '(secret)');
  const printable = hidden.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  return printable.length > shownCharactersMax ? `${printable.slice(0, shownCharactersMax)}…` : printable;
}

function describeFetchError(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  if (error.name === 'TimeoutError') return 'time-out';
  const { cause } = error;
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message;
  return error.message;
}
