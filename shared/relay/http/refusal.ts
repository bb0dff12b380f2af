/** Refusals: the errors that clients see. Every code must be in the table below. */
import type { Endpoint } from '../../endpoints/endpoint.ts';
import {
  type ErrorBody,
  type ErrorObject,
  type ErrorType,
  InvalidRequest,
} from '../../wire/invalid-request.ts';
import type { JsonRecord } from '../../wire/json.ts';
import type { RelayRequest, RelayResponse } from './http.ts';
import { storeRequestId, StoreUnavailable } from '../ports/store-errors.ts';

// Written once, because each function loads the table when it starts.
const invalid = 'invalid_request_error';
const denied = 'access_denied_error';

/** Every error that a client can get, by code: its HTTP status and its type. */
export const refusals = {
  relay_closed: [403, denied],
  origin_denied: [403, denied],
  invalid_api_key: [401, 'authentication_error'],
  model_not_allowed: [403, denied],
  official_not_allowed: [403, denied],
  key_may_not_manage: [403, denied],
  key_exceeds_own: [403, denied],
  key_not_yours_to_change: [403, denied],
  key_not_found: [404, invalid],
  key_changed: [409, invalid],
  too_many_keys: [409, invalid],
  top_up_not_offered: [404, invalid],
  top_up_failed: [502, 'upstream_error'],
  code_not_found: [404, invalid],
  code_redeemed: [409, invalid],
  code_revoked: [409, invalid],
  code_expired: [409, invalid],
  customer_refused: [403, denied],
  relay_loop: [508, 'upstream_error'],
  unsupported_content_encoding: [415, invalid],
  request_too_large: [413, invalid],
  invalid_encoding: [400, invalid],
  empty_body: [400, invalid],
  invalid_json: [400, invalid],
  json_too_deep: [400, invalid],
  json_too_wide: [400, invalid],
  too_much_work: [400, invalid],
  model_not_found: [404, invalid],
  response_not_found: [404, invalid],
  previous_response_not_found: [400, invalid],
  thread_not_found: [404, invalid],
  not_found: [404, invalid],
  method_not_allowed: [405, invalid],
  websocket_not_offered: [426, invalid],
  insufficient_quota: [429, 'quota_exceeded_error'],
  request_in_progress: [409, invalid],
  request_already_completed: [409, invalid],
  idempotency_key_reused: [422, invalid],
  rate_limit_exceeded: [429, 'rate_limit_error'],
  balance_reserved: [429, 'rate_limit_error'],
  upstream_unavailable: [502, 'upstream_error'],
  upstream_timeout: [504, 'upstream_error'],
  unavailable: [503, 'internal_error'],
  internal: [500, 'internal_error'],
} as const satisfies Record<string, readonly [number, ErrorType]>;

export type RefusalCode = keyof typeof refusals;

export const isRefusalCode = (code: string): code is RefusalCode => Object.hasOwn(refusals, code);

interface RefusalOptions {
  param?: string | undefined;
  headers?: Record<string, string> | undefined;
  /** For the log only; the client does not see it. Must not quote foreign text. */
  reason?: string | undefined;
  /** Amounts and limits that decided, for the log: fixed words and numbers. */
  facts?: LoggedFacts | undefined;
  /** Every candidate refused for load. */
  isOverloaded?: boolean | undefined;
  /** Sent only in forms that have a field for details. */
  details?: JsonRecord | undefined;
}

type LoggedFacts = Readonly<Record<string, string | number | undefined>>;

/** Why a request is not served. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly reason: string | undefined;
  readonly facts: LoggedFacts | undefined;
  readonly isOverloaded: boolean;
  readonly details: JsonRecord | undefined;
  readonly body: ErrorBody;

  constructor(status: number, error: ErrorObject, options: RefusalOptions = {}) {
    super(error.message);
    this.status = status;
    this.headers = options.headers ?? {};
    this.reason = options.reason;
    this.facts = options.facts;
    this.isOverloaded = options.isOverloaded ?? false;
    this.details = options.details;
    this.body = { error };
  }
}

export function refuse(code: RefusalCode, message: string, options: RefusalOptions = {}): Refusal {
  const [status, type] = refusals[code];
  return new Refusal(status, { message, type, param: options.param ?? null, code }, options);
}

/** The bytes of a body that is to be small. Throws a Refusal. */
export function smallBody(request: RelayRequest, bytesMax: number): Uint8Array {
  const body = request.rawBody();
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  if (bytes.length <= bytesMax) return bytes;
  throw refuse('request_too_large', `The body has ${bytes.length} bytes; at most ${bytesMax} are accepted.`);
}

/** Converts any thrown error to a refusal. Clients never see messages of unknown errors. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof InvalidRequest) {
    const { message, code, param, details } = error;
    return new Refusal(400, { message, type: 'invalid_request_error', param, code }, { details });
  }
  if (error instanceof StoreUnavailable) {
    const id = storeRequestId(error);
    return refuse(
      'unavailable',
      'The relay cannot reach its database right now. Nothing was charged; try again.',
      {
        headers: { 'retry-after': '2' },
        reason: 'store_unavailable',
        ...(id !== undefined && { facts: { store_request_id: id } }),
      },
    );
  }
  return refuse(
    'internal',
    'Something went wrong inside the relay. Quote the request id when you report it.',
  );
}

export type AnswerForm = Pick<Endpoint, 'refused' | 'answerHeaders'>;

export const respondRefusal = (
  { status, headers, body, isOverloaded, details }: Refusal,
  requestId: string,
  form: AnswerForm = {},
): RelayResponse & { body: string } => {
  const refused = form.refused?.({ status, error: body.error, isOverloaded, details }, requestId);
  const shown = refused ?? { status, body, headers: {} };
  const response = respondJson(requestId, shown.body);
  return {
    ...response,
    status: shown.status,
    headers: { ...response.headers, ...form.answerHeaders?.(requestId), ...shown.headers, ...headers },
  };
};

/** For one caller: kept by no cache on its way. */
export const respondJson = (requestId: string, value: object): RelayResponse & { body: string } => ({
  status: 200,
  headers: {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-request-id': requestId,
  },
  body: JSON.stringify(value),
  done: Promise.resolve(),
});
