import { describe, expect, it } from 'vitest';
import { buildResponseError } from '../../../shared/endpoints/responses/response-object.ts';
import type { ErrorType } from '../../../shared/wire/invalid-request.ts';

describe('the error of a failed response has a code of the published list', () => {
  it.each<[string, ErrorType, string]>([
    ['upstream_unavailable', 'upstream_error', 'server_error'],
    ['upstream_timeout', 'upstream_error', 'server_error'],
    ['internal', 'internal_error', 'server_error'],
    ['balance_reserved', 'rate_limit_error', 'rate_limit_exceeded'],
    ['an_upstreams_own_code', 'invalid_request_error', 'invalid_prompt'],
    ['image_too_large', 'invalid_request_error', 'image_too_large'],
    ['rate_limit_exceeded', 'rate_limit_error', 'rate_limit_exceeded'],
    // Agents act on these two, which OpenAI sends although they are not on its list.
    ['context_length_exceeded', 'invalid_request_error', 'context_length_exceeded'],
    ['insufficient_quota', 'quota_exceeded_error', 'insufficient_quota'],
  ])('%s of %s is %s', (code, type, shown) => {
    const error = { message: 'No.', type, param: null, code };
    expect(buildResponseError(error)).toEqual({ ...error, code: shown });
  });
});
