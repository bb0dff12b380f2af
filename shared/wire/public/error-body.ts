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
