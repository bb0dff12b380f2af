/** Errors in a caller's request, and the body of every error answer. */
import type { JsonRecord } from './json.ts';

/** The caller's request does not match the contract. Always answered with a 400 that names the field. */
export class InvalidRequest extends Error {
  override readonly name = 'InvalidRequest';
  readonly code: string;
  /** The path of the wrong field, such as `messages[2].role`; null if the whole body is wrong. */
  readonly param: string | null;
  /** Shown to clients whose error format has details. */
  readonly details: JsonRecord | undefined;

  constructor(code: string, param: string | null, message: string, details?: JsonRecord) {
    super(message);
    this.code = code;
    this.param = param;
    this.details = details;
  }
}

/** The request needs stored responses, which its key may not have as far as this environment knows. */
export class StorageNotAllowed extends InvalidRequest {}

/** The body of every error answer, and the `error` of an error chunk. All four keys are always present. */
export type ErrorType =
  | 'access_denied_error'
  | 'authentication_error'
  | 'invalid_request_error'
  | 'quota_exceeded_error'
  | 'rate_limit_error'
  | 'upstream_error'
  | 'internal_error';

export interface ErrorObject {
  message: string;
  type: ErrorType;
  param: string | null;
  code: string;
}

export interface ErrorBody {
  error: ErrorObject;
}
