/** Calls of this relay with the customer's key, which is sent as a header and never in an address. */

import { t } from './language.ts';

export class CallFailed extends Error {
  readonly status: number;
  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

export class RelayClient {
  readonly #key: string;
  /** Aborts when the key is left: nothing goes on with it then. */
  readonly ended: AbortSignal;

  constructor(key: string, ended: AbortSignal) {
    this.#key = key;
    this.ended = ended;
  }

  async get<Body>(path: string): Promise<Body> {
    return (await (await this.#fetch(path, {})).json()) as Body;
  }

  /** @param body undefined: none is sent */
  async send<Body>(method: string, path: string, body?: object): Promise<Body> {
    const sent = body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    return (await (await this.#fetch(path, { method, ...sent })).json()) as Body;
  }

  post(
    path: string,
    body: object,
    { signal, headers }: Pick<RequestInit, 'signal' | 'headers'> = {},
  ): Promise<Response> {
    const all = { ...(headers as Record<string, string>), 'content-type': 'application/json' };
    return this.#fetch(path, { method: 'POST', headers: all, body: JSON.stringify(body), signal });
  }

  async #fetch(path: string, { headers, signal, ...options }: RequestInit): Promise<Response> {
    const response = await fetch(path, {
      ...options,
      signal: signal ? AbortSignal.any([this.ended, signal]) : this.ended,
      headers: { ...(headers as Record<string, string>), authorization: `Bearer ${this.#key}` },
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
    });
    if (!response.ok) throw await failureOf(response);
    return response;
  }
}

async function failureOf(response: Response): Promise<CallFailed> {
  const text = await response.text().catch(() => '');
  const id = response.headers.get('x-request-id');
  return new CallFailed(
    `${messageIn(text) ?? t().answered(response.status)}${id === null ? '' : t().request(id)}`,
    response.status,
  );
}

function messageIn(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: { message?: unknown } };
    return typeof error?.message === 'string' ? error.message : undefined;
  } catch {
    return undefined;
  }
}

export const wordsOf = (error: unknown): string =>
  error instanceof CallFailed
    ? error.message + (error.status === 401 ? t().refusedKey : '')
    : t().unreachable(error instanceof Error ? error.message : String(error));

/** Where the key is while the page is open: in memory, or in the tab's storage if the customer says so. */

const stored = 'relay-key';
const keyPattern = /^sk-[\x21-\x7e]{1,200}$/;

export const isKey = (text: string): boolean => keyPattern.test(text);

/**
 * The key behind the `#` of the address, which browsers send nowhere. It is taken out of the address at once: what is
 * shown, shared or copied from then on has no key.
 */
export function takeFromAddress(): string | undefined {
  const written = unescaped(location.hash.slice(1)).trim();
  if (!written.startsWith('sk-')) return undefined;
  history.replaceState(null, '', location.pathname);
  return isKey(written) ? written : undefined;
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Storage may be switched off: the key is then in memory alone. */
export function storedKey(): string | undefined {
  try {
    return sessionStorage.getItem(stored) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keepKey(key: string | undefined): void {
  try {
    if (key === undefined) sessionStorage.removeItem(stored);
    else sessionStorage.setItem(stored, key);
  } catch {
    // As above.
  }
}
