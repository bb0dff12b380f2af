import type { VendorReply } from './vendor.ts';
import { retryAfterIn, type EarlyFailure, type LateFailure } from './words.ts';

export const jsonReply = (
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): VendorReply => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  frames: [JSON.stringify(value)],
});

/** A server-sent event, with its name where the vendor names events. */
export const sseFrame = (data: unknown, event?: string): string =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

export const sseReply = (frames: string[]): VendorReply => ({
  status: 200,
  headers: { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' },
  frames,
});

/** The reply as the user's text wants it to fail: half of it, then `errorFrame`, a broken connection or nothing. */
export function failing(
  reply: VendorReply,
  failure: LateFailure | undefined,
  errorFrame: string | Uint8Array,
): VendorReply {
  if (failure === undefined) return reply;
  if (failure === 'mute') return { ...reply, frames: [], ending: 'silent' };
  const half = reply.frames.slice(0, Math.ceil(reply.frames.length / 2));
  if (failure === 'cut') return { ...reply, frames: [...half, errorFrame] };
  return { ...reply, frames: half, ending: failure === 'hang up' ? 'destroyed' : 'silent' };
}

/** The refusal that the user's text asks for, with the `retry-after` that it asks for. */
export function failedEarly(reply: VendorReply, failure: EarlyFailure, said: string): VendorReply {
  const retryAfter = failure === 'throttle' ? retryAfterIn(said) : undefined;
  const headers = { ...reply.headers, ...(retryAfter !== undefined && { 'retry-after': retryAfter }) };
  return { ...reply, headers, rule: failure };
}
