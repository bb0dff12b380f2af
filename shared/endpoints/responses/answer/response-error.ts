/**
 * The error that a response failed with, as its clients see it. OpenAI's schema has a closed list of codes there: clients
 * that check answers against it refuse the whole response for another one. The log has the relay's code.
 */
import type { ErrorObject } from '../../../wire/public/error-body.ts';

/** `ResponseError.code` of OpenAI's schema. */
const published = new Set([
  'server_error',
  'rate_limit_exceeded',
  'invalid_prompt',
  'data_residency_mismatch',
  'bio_policy',
  'misalignment_policy_violation',
  'vector_store_timeout',
  'invalid_image',
  'invalid_image_format',
  'invalid_base64_image',
  'invalid_image_url',
  'image_too_large',
  'image_too_small',
  'image_parse_error',
  'image_content_policy_violation',
  'invalid_image_mode',
  'image_file_too_large',
  'unsupported_image_media_type',
  'empty_image_file',
  'failed_to_download_image',
  'image_file_not_found',
]);

/** Not in the list, but sent by OpenAI all the same: coding agents shorten the conversation or stop on these alone. */
const actedOn = new Set(['context_length_exceeded', 'insufficient_quota']);

export function responseError(error: ErrorObject): ErrorObject {
  const { code } = error;
  return published.has(code) || actedOn.has(code) ? error : { ...error, code: codeFor(error) };
}

function codeFor({ type }: ErrorObject): string {
  if (type === 'rate_limit_error') return 'rate_limit_exceeded';
  // What the upstream refuses, it refuses again.
  return type === 'invalid_request_error' ? 'invalid_prompt' : 'server_error';
}
