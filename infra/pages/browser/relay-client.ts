/** Calls of this relay with the customer's key, which is sent as a header and never in an address. */

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

  post(path: string, body: object, signal: AbortSignal): Promise<Response> {
    const headers = { 'content-type': 'application/json' };
    return this.#fetch(path, { method: 'POST', headers, body: JSON.stringify(body), signal });
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
    `${messageIn(text) ?? `The relay answered ${response.status}.`}${id === null ? '' : ` (request ${id})`}`,
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
    ? error.message
    : `The relay could not be reached: ${error instanceof Error ? error.message : String(error)}`;
