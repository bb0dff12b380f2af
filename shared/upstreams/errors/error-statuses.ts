/** The statuses that errors inside an answer with status 200 would have had, by their machine-readable names. */

/** Vendors' codes, types and reasons, in any case of letters. The first pattern that fits counts. */
const statuses: readonly [RegExp, number][] = [
  [/^(?:authentication_error|invalid_api_key|incorrect_api_key|unauthenticated|unrecognizedclient)$/, 401],
  [/^billing_error$/, 402],
  [/^(?:permission_error|permission_denied|accessdenied|unsupported_country_region_territory)$/, 403],
  [/^(?:rate_limit_exceeded|rate_limit_error|too_many_requests|toomanyrequests|resource_exhausted)$/, 429],
  [/^throttling(?:_error)?$/, 429],
  [/^(?:service_unavailable|serviceunavailable|unavailable|slow_down)$/, 503],
  [/^(?:engine_)?overloaded(?:_error)?$/, 529],
  [/^(?:server_error|api_error|internal|internal_error|internal_server_error|internalserver)$/, 500],
  [/^(?:request_too_large|image_too_large|image_file_too_large)$/, 413],
  [/^(?:invalid_(?:request|request_error|argument|prompt|value|type)|validation|bad_request)$/, 400],
  [/^(?:invalid_image|invalid_base64|unsupported_|missing_required_)[a-z0-9_]*$/, 400],
  [/^image_(?:too_small|parse_error|file_not_found)$|^(?:empty_image_file|failed_to_download_image)$/, 400],
  [/^(?:[a-z_]*policy_violation|content_policy|content_filter|data_inspection_failed)$/, 400],
  [/^responsibleaipolicyviolation$/, 400],
];

/** The longest name that is looked at. */
const nameLengthMax = 64;

/** The machine-readable fields of an error. */
export interface NamedError {
  code?: unknown;
  type?: unknown;
  reasons?: readonly string[];
}

/** Undefined: nothing in the error says one. The code counts before the type, which is wider. */
export function statusOfError({ code, type, reasons = [] }: NamedError): number | undefined {
  for (const name of [code, type, ...reasons]) {
    const status = statusOfName(name);
    if (status !== undefined) return status;
  }
  return undefined;
}

/** A code may be the status itself, as a number or its digits. */
function statusOfName(name: unknown): number | undefined {
  if (typeof name !== 'string' && typeof name !== 'number') return undefined;
  const text = String(name);
  if (/^[45]\d\d$/.test(text)) return Number(text);
  if (text.length > nameLengthMax) return undefined;
  const word = text.toLowerCase().replace(/exception$/, '');
  return statuses.find(([pattern]) => pattern.test(word))?.[1];
}
