/**
 * The words of vendors' errors that the log may have: fixed words, so that an upstream writes nothing of its own into it.
 */

/** Codes, types and reasons that vendors publish. */
const known: ReadonlySet<string> = new Set(
  [
    'insufficient_quota rate_limit_exceeded tokens requests invalid_api_key invalid_request_error server_error',
    'billing_hard_limit_reached billing_not_active exceeded_current_quota_error account_deactivated',
    'context_length_exceeded model_not_found unsupported_parameter unsupported_value invalid_value',
    'missing_required_parameter unknown_parameter invalid_type invalid_image_url content_policy_violation',
    'content_filter string_above_max_length integer_above_max_value invalid_json_schema invalid_function_parameters',
    'authentication_error permission_error not_found_error request_too_large rate_limit_error api_error',
    'overloaded_error timeout_error billing_error internal_server_error engine_overloaded_error',
    'INVALID_ARGUMENT FAILED_PRECONDITION PERMISSION_DENIED NOT_FOUND RESOURCE_EXHAUSTED INTERNAL UNAVAILABLE',
    'DEADLINE_EXCEEDED UNAUTHENTICATED API_KEY_INVALID ValidationException ThrottlingException',
    'AccessDeniedException ModelTimeoutException ModelNotReadyException ServiceUnavailableException',
    'ModelErrorException ServiceQuotaExceededException ResourceNotFoundException InternalServerException',
    'DeploymentNotFound OperationNotSupported upstream_refused',
  ].flatMap((line) => line.split(' ')),
);

/** The first of an error's words that is known; `other`: it has words, none of which is known. Undefined: it has none. */
export function vendorWord(error: {
  code?: unknown;
  type?: unknown;
  reasons?: readonly string[];
}): string | undefined {
  const said = [error.code, ...(error.reasons ?? []), error.type].filter((word) => typeof word === 'string');
  return said.find((word) => known.has(word)) ?? (said.length > 0 ? 'other' : undefined);
}
