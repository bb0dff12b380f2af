/**
 * Decides whether a request may reach a page at all: by Host (DNS rebinding), by Origin
 * (other sites), by size. Never looks at what a page does.
 */
import type { ConsoleOptions } from './visit/visit.ts';

/** A form of this console is far smaller: 300 models of a billing rule are some 10 KB. */
export const formBytesMax = 256 * 1024;
const addressLengthMax = 4096;

export interface Refusal {
  status: 400 | 403 | 405 | 413 | 414 | 421;
  why: string;
}

/** Everything that can be said without the body. Undefined: it may go on. */
export function refusalOf(request: Request, { hosts }: ConsoleOptions): Refusal | undefined {
  const { headers, method, url } = request;
  const host = headers.get('host') ?? new URL(url).host;
  if (!hosts.includes(host))
    return { status: 421, why: 'This address is not the console’s own. Open the address that it printed.' };
  if (url.length > addressLengthMax) return { status: 414, why: 'The address is too long.' };
  const site = headers.get('sec-fetch-site');
  if (method === 'GET') return undefined;
  // HEAD would take a new key, which is shown once, and show it to nobody.
  if (method !== 'POST') return { status: 405, why: 'Pages are read with GET and written with POST.' };
  // A browser sends Origin with every form; a request without one is not from a page of this console.
  const origin = headers.get('origin');
  if (origin === null || !hosts.some((each) => origin === `http://${each}` || origin === `https://${each}`))
    return { status: 403, why: 'This form was sent by another site.' };
  if (site !== null && site !== 'same-origin')
    return { status: 403, why: 'This form was sent by another site.' };
  if (headers.get('content-type')?.split(';')[0] !== 'application/x-www-form-urlencoded')
    return { status: 400, why: 'This is not a form of the console.' };
  if (Number(headers.get('content-length') ?? 0) > formBytesMax) return tooLarge;
  return undefined;
}

export const tooLarge: Refusal = { status: 413, why: 'The form is too large.' };
