import { retryAfterIn, type EarlyFailure, type LateFailure } from './script.ts';

/** What every double is made of: rules as data, and a reply that needs no socket. */

export interface VendorRequest {
  method: string;
  /** Path below the vendor's own prefix, without the query. */
  path: string;
  /** Names in small letters. */
  headers: Record<string, string>;
  /** The body as it arrived: signatures cover its bytes. */
  text: string;
  /** The whole path and the `host` header of the call, which a signature covers too. */
  signedPath?: string;
}

export interface VendorReply {
  status: number;
  headers: Record<string, string>;
  /** Written one by one. */
  frames: (string | Uint8Array)[];
  /** How the answer ends; absent: as it should. */
  ending?: 'destroyed' | 'silent';
  /** The rule that the request broke. */
  rule?: string;
  /** What the vendor tolerates, and a faithful relay does not do, such as a lost thinking block. */
  notes?: string[];
}

/** The vendor's answer to a request that breaks a rule. Each vendor renders it in its own form. */
export interface Refusal {
  status: number;
  message: string;
  type?: string;
  code?: string | null;
  param?: string | null;
}

export interface RuleFacts {
  id: string;
  /** One sentence. */
  says: string;
  /** Public page or thread that shows the vendor refusing it. */
  source: string;
  /** Date of the thread; for a page without one, the day on which it was named here. */
  date: string;
}

export interface Rule<Call> extends RuleFacts {
  check: (call: Call) => Refusal | false | undefined;
}

export interface Vendor {
  name: string;
  models: string[];
  /** Path below the vendor's prefix that a channel's endpoint ends with. */
  base: string;
  rules: RuleFacts[];
  serve(request: VendorRequest): Promise<VendorReply>;
}

interface Broken {
  rule: string;
  refusal: Refusal;
}

/** The first rule that the call breaks, in the order of the list. */
export function firstBroken<Call>(rules: Rule<Call>[], call: Call): Broken | undefined {
  for (const { id, check } of rules) {
    const refusal = check(call);
    if (refusal) return { rule: id, refusal };
  }
  return undefined;
}

/** The body as an object; undefined for anything else. */
export function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The objects of a list; nothing for what is not a list. */
export const objectsIn = (value: unknown): Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

/** The value as text; numbers and objects too, so that a wrong type is shown and not lost. */
export const textIn = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value);

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
