/** Calls the relay with the customer's key, which is sent as a header and never in an address. */

import { asRecord, parseJson, decodePercent, textIn } from '../../../shared/wire/json.ts';
import { say } from './elements.ts';
import { createStoredText, t } from './language.ts';

export class CallFailed extends Error {
  readonly status: number;
  constructor(message: string, status: number) {
    super(message);
    this.status = status;
  }
}

interface Call {
  method?: string;
  body?: object;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export class RelayClient {
  readonly #key: string;
  /** Aborts when the customer signs out, so that nothing continues with the key. */
  readonly ended: AbortSignal;

  constructor(key: string, ended: AbortSignal) {
    this.#key = key;
    this.ended = ended;
  }

  async json<Body>(path: string, call?: Call): Promise<Body> {
    return (await (await this.send(path, call)).json()) as Body;
  }

  async send(path: string, { method = 'GET', body, headers, signal }: Call = {}): Promise<Response> {
    const response = await fetch(path, {
      method,
      ...(body && { body: JSON.stringify(body) }),
      signal: signal ? AbortSignal.any([this.ended, signal]) : this.ended,
      headers: {
        ...headers,
        ...(body && { 'content-type': 'application/json' }),
        authorization: `Bearer ${this.#key}`,
      },
      cache: 'no-store',
      credentials: 'omit',
      redirect: 'error',
    });
    if (!response.ok) throw await readFailure(response);
    return response;
  }
}

async function readFailure(response: Response): Promise<CallFailed> {
  const text = await response.text().catch(() => '');
  const id = response.headers.get('x-request-id');
  const said = textIn(asRecord(asRecord(parseJson(text))['error'])['message']);
  const words = said || t().answered(response.status);
  return new CallFailed(`${words}${id === null ? '' : t().request(id)}`, response.status);
}

export const describeError = (error: unknown): string =>
  error instanceof CallFailed
    ? error.message + (error.status === 401 ? t().refusedKey : '')
    : t().unreachable(error instanceof Error ? error.message : String(error));

/** Runs a task and reports its progress in the element. */
export async function reportProgress(id: string, work: () => Promise<string>): Promise<boolean> {
  say(id, t().loading);
  try {
    say(id, await work());
    return true;
  } catch (error) {
    say(id, describeError(error), true);
    return false;
  }
}

/** Outlives a reload, if the customer asks for it. */
export const storedKey = createStoredText(() => sessionStorage, 'relay-key');

const keyPattern = /^sk-[\x21-\x7e]{1,200}$/;

export const isKey = (text: string): boolean => keyPattern.test(text);

/**
 * The key behind the `#` of the address, which browsers send nowhere. It is taken out of the address at once: what is
 * shown, shared or copied from then on has no key.
 */
export function takeFromAddress(): string | undefined {
  const written = decodePercent(location.hash.slice(1)).trim();
  if (!written.startsWith('sk-')) return undefined;
  history.replaceState(null, '', location.pathname);
  return isKey(written) ? written : undefined;
}
