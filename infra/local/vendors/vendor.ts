/** The parts of every double: rules as data, and a reply that needs no socket. */
import { createHmac, hash } from 'node:crypto';
import { isRecord, jsonText, parseJson, recordsIn } from '../../../shared/wire/json.ts';

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
  /** Pauses before the first frame and after each. Default: none. */
  pace?: { firstMs: number; frameMs: number };
  /** How the answer ends. Default: as it should. */
  ending?: 'destroyed' | 'silent';
  /** The rule that the request broke. */
  rule?: string;
  /** Things the vendor tolerates but a faithful relay avoids, such as a lost thinking block. */
  notes?: string[];
}

/** The vendor's answer to a request that breaks a rule. Each vendor renders it in its own form. */
export interface VendorRefusal {
  status: number;
  message: string;
  type?: string;
  code?: string | null;
  param?: string | null;
}

/** The rejection; a plain text is the message of a 400 in the vendor's usual form. */
export type Check<Call> = (call: Call) => VendorRefusal | string | false | undefined;

/**
 * By name, in the order in which the vendor looks. Beside each: what it says, and the public page or thread that shows the
 * vendor refusing it, with the thread's date; pages were read in November 2026.
 */
export type Rules<Call> = Record<string, Check<Call>>;

export interface Vendor {
  name: string;
  models: string[];
  /** More facts of a model in the list. Default: none. */
  listed?: (model: string) => object;
  /** Path below the vendor's prefix that a channel's endpoint ends with. */
  base: string;
  rules: string[];
  serve(request: VendorRequest): VendorReply | Promise<VendorReply>;
}

export function refuseByRule<Call>(
  rules: Rules<Call>,
  call: Call,
  refuse: (refusal: VendorRefusal) => VendorReply,
): VendorReply | undefined {
  for (const [rule, check] of Object.entries(rules)) {
    const found = check(call);
    if (found)
      return { ...refuse(typeof found === 'string' ? { status: 400, message: found } : found), rule };
  }
  return undefined;
}

export const replyWithJson = (
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): VendorReply => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  frames: [JSON.stringify(value)],
});

/** A server-sent event, with its name where the vendor names events. */
export const formatSseFrame = (data: unknown, event?: string): string =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

export const replyWithSse = (
  frames: VendorReply['frames'],
  contentType = 'text/event-stream; charset=utf-8',
): VendorReply => ({
  status: 200,
  headers: { 'content-type': contentType, 'cache-control': 'no-cache' },
  frames,
});

/** The body as an object; undefined for anything else. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  const value = parseJson(text);
  return isRecord(value) ? value : undefined;
}

/** The text of a content, which is a text or parts that may have one. */
export const readContentText = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : recordsIn(content)
        .map((part) => jsonText(part['text']))
        .join(' ');

export const hashSha256 = (text: string): string => hash('sha256', text);

const computeMac = (payload: string): string =>
  createHmac('sha256', 'a double').update(payload).digest('base64url');

/** Signs facts that clients cannot read, so that the vendor recognizes them without storing anything. */
export function signPayload(facts: object): string {
  const payload = Buffer.from(JSON.stringify(facts)).toString('base64url');
  return `${payload}.${computeMac(payload)}`;
}

/** The facts; undefined for a text that the vendor did not make. */
export function verifyPayload(text: string): Record<string, unknown> | undefined {
  const [payload = '', signature] = text.split('.');
  return signature === computeMac(payload)
    ? parseObject(Buffer.from(payload, 'base64url').toString())
    : undefined;
}

/** The bearer token. */
export const secretOf = (headers: Record<string, string>): string =>
  /^Bearer (.+)$/.exec(headers['authorization'] ?? '')?.[1] ?? '';
