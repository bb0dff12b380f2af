/**
 * Decides whether a request may reach a page: checks Host (DNS rebinding), Origin (other sites) and size, and accepts only forms
 * of this session. Never looks at what a page does.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { ConsoleOptions, Identity } from './visit/visit.ts';

/**
 * Sent with every answer. Pages load files only from the console, cannot be framed, and are never stored, because a page may
 * show a new key.
 */
export const guardHeaders: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'self'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  // With no-referrer, browsers send `Origin: null` with the console's own forms.
  'referrer-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  // Both together keep other pages of this host away from the console's windows; customers' pages send only the first.
  'cross-origin-embedder-policy': 'require-corp',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=(), payment=()',
  'cache-control': 'no-store',
};

/** Answers clients without a session, which get no page. */
export const answerPlain = (status: number, words: string): Response =>
  new Response(`${words}\n`, {
    status,
    headers: { ...guardHeaders, 'content-type': 'text/plain; charset=utf-8' },
  });

/** Forms are far smaller: a rule with 300 models is some 10 KB. CSV pages show as many rows as fit. */
export const formBytesMax = 256 * 1024;
const addressLengthMax = 4096;

interface GuardRefusal {
  status: 400 | 403 | 405 | 413 | 414 | 421;
  why: string;
}

/** Checks everything but the body. */
function refusalOf(request: Request, { hosts }: ConsoleOptions): GuardRefusal | undefined {
  const { headers, method, url } = request;
  const host = headers.get('host') ?? new URL(url).host;
  if (hosts && !hosts.includes(host))
    return { status: 421, why: 'Unknown host. Open the address that the console printed.' };
  if (url.length > addressLengthMax) return { status: 414, why: 'The address is too long.' };
  if (method === 'GET') return undefined;
  // HEAD would use up the one display of a new key.
  if (method !== 'POST') return { status: 405, why: 'Only GET and POST are supported.' };
  // Browsers send Origin with every form, so a request without it is not from a page of this console.
  const isOwn = headers.get('origin') === `${new URL(url).protocol}//${host}`;
  if (!isOwn || (headers.get('sec-fetch-site') ?? 'same-origin') !== 'same-origin')
    return { status: 403, why: 'This form was sent from another site.' };
  if (headers.get('content-type')?.split(';')[0] !== 'application/x-www-form-urlencoded')
    return { status: 400, why: 'This is not a console form.' };
  return undefined;
}

/** Parameters of links whose page costs money on AWS. */
const paid: ReadonlySet<string> = new Set(['read', 'refused', 'live']);

/** Ignores parameters that cost money when a page of another site led here. */
export function readQuery({ headers, url }: Request): (name: string) => string {
  const { searchParams } = new URL(url);
  const isLed = ['cross-site', 'same-site'].includes(headers.get('sec-fetch-site') ?? '');
  return (name) => (isLed && paid.has(name) ? '' : (searchParams.get(name)?.trim() ?? ''));
}

export function readCookie({ headers }: Request, name: string): string | undefined {
  const all = (headers.get('cookie') ?? '').split(';').map((each) => each.trim());
  return all.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
}

const tooLarge: GuardRefusal = {
  status: 413,
  why: 'The form is too large (256 KB at most, as a browser sends it). Nothing was saved. Send less at a time, or use the command line, which accepts more.',
};

/** A plan of 500 entries. */
const fieldsMax = 2_003;
const tooMany: GuardRefusal = {
  status: 413,
  why: `The form has too many fields (${fieldsMax} at most). Nothing was saved. Use the command line, which accepts a row of any length.`,
};

/** Returns the fields of a form of this session, or the reason to refuse it. Of fields with the same name the last one counts. */
export async function admitForm(
  request: Request,
  options: ConsoleOptions,
  { formToken }: Identity,
): Promise<GuardRefusal | { fields: Record<string, string> }> {
  const refusal = refusalOf(request, options);
  if (refusal || request.method === 'GET') return refusal ?? { fields: {} };
  const text = await readBounded(request);
  const sent = [...new URLSearchParams(text)];
  if (text === undefined) return tooLarge;
  if (sent.length > fieldsMax) return tooMany;
  // Browsers send line ends as CRLF, whatever the row has.
  const fields = Object.fromEntries(
    sent.map(([name, value]) => [name, value.replaceAll('\r\n', '\n').trim()]),
  );
  if (isSame(fields['form_token'] ?? '', formToken)) return { fields };
  return {
    status: 403,
    why: 'This form belongs to another session. Nothing was saved. Reload the page and try again.',
  };
}

/** A form that is too large is still read, so that the browser sees the answer. 10 MB of text are 30 MB when encoded. */
const drainedBytesMax = 32 * 1024 * 1024;

async function readBounded(request: Request): Promise<string | undefined> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of request.body ?? []) {
    bytes += piece.byteLength;
    if (bytes <= formBytesMax) pieces.push(piece);
    if (bytes > drainedBytesMax) break;
  }
  return bytes > formBytesMax ? undefined : Buffer.concat(pieces).toString();
}

/** Takes the same time wherever two texts differ. */
export function isSame(a: string, b: string): boolean {
  const [first, second] = [a, b].map((text) => createHash('sha256').update(text).digest());
  return first !== undefined && second !== undefined && timingSafeEqual(first, second);
}
