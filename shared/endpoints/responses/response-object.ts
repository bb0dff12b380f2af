/**
 * The response object of POST /v1/responses, from its start to its end. Source: the relay's client contract, "Responses
 * response", and the fields that OpenAI's and Open Responses' schemas require.
 */
import { showCounts, type ChatUsage, type AnswerIdentity } from '../../wire/chat-response.ts';
import type { ErrorObject } from '../../wire/invalid-request.ts';
import type { OutputItem } from './answer-items.ts';

export interface ResponseObject {
  id: string;
  object: 'response';
  /** Unix seconds. */
  created_at: number;
  /** Unix seconds; null until the answer is complete. */
  completed_at: number | null;
  status: 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed';
  model: string;
  output: OutputItem[];
  usage: ReturnType<typeof toResponsesUsage> | null;
  error: ErrorObject | null;
  incomplete_details: { reason: 'max_output_tokens' | 'content_filter' } | null;
  /** Official mode only, in the final response: what the call would have cost, in yuan. */
  quota?: number;
  [echoed: string]: unknown;
}

/** The response object at the start of an answer, without the fields of the request that it repeats. */
export const buildStartedResponse = ({ requestId, created, model }: AnswerIdentity): ResponseObject => ({
  id: `resp-${requestId}`,
  object: 'response',
  created_at: created,
  completed_at: null,
  status: 'in_progress',
  model,
  output: [],
  usage: null,
  error: null,
  incomplete_details: null,
});

const toResponsesUsage = (usage: ChatUsage) => ({
  input_tokens: usage.prompt_tokens,
  input_tokens_details: showCounts(usage.prompt_tokens_details),
  output_tokens: usage.completion_tokens,
  output_tokens_details: { reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? 0 },
  total_tokens: usage.total_tokens,
});

/** Why an answer with this finish reason is incomplete; undefined if it is complete. */
export function incompleteReason(finish: string): 'max_output_tokens' | 'content_filter' | undefined {
  if (finish === 'length') return 'max_output_tokens';
  return finish === 'content_filter' ? finish : undefined;
}

interface AnswerEnd {
  output: OutputItem[];
  usage: ChatUsage;
  finish: string;
  quota: number | undefined;
  /** Unix seconds. */
  endedAt: number;
}

export function buildFinishedResponse(started: ResponseObject, end: AnswerEnd): ResponseObject {
  const reason = incompleteReason(end.finish);
  return {
    ...started,
    status: reason ? 'incomplete' : 'completed',
    completed_at: reason ? null : end.endedAt,
    output: end.output,
    usage: toResponsesUsage(end.usage),
    incomplete_details: reason ? { reason } : null,
    ...(end.quota === undefined ? {} : { quota: end.quota }),
  };
}

/**
 * The codes that a failed response may have. Those of OpenAI's schema: clients that check answers against it refuse the
 * whole response for another one; the log has the relay's code. The last two are not in it, but OpenAI sends them all the
 * same: coding agents shorten the conversation or stop on these alone.
 */
const shownCodes = new Set(
  (
    'server_error rate_limit_exceeded invalid_prompt data_residency_mismatch bio_policy ' +
    'misalignment_policy_violation vector_store_timeout invalid_image invalid_image_format ' +
    'invalid_base64_image invalid_image_url image_too_large image_too_small image_parse_error ' +
    'image_content_policy_violation invalid_image_mode image_file_too_large unsupported_image_media_type ' +
    'empty_image_file failed_to_download_image image_file_not_found ' +
    'context_length_exceeded insufficient_quota'
  ).split(' '),
);

/** The error that a response failed with, as its clients see it. */
export const buildResponseError = (error: ErrorObject): ErrorObject =>
  shownCodes.has(error.code) ? error : { ...error, code: codeFor(error) };

function codeFor({ type }: ErrorObject): string {
  if (type === 'rate_limit_error') return 'rate_limit_exceeded';
  // The upstream would refuse the request again.
  return type === 'invalid_request_error' ? 'invalid_prompt' : 'server_error';
}
