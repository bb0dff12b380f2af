/**
 * Types of the answers of POST /v1/responses: the response object and the events of its stream. Source: the
 * relay's client contract, "Responses response" and "Responses stream event types", and the fields that
 * OpenAI's and Open Responses' schemas require.
 */
import {
  shownCounts,
  type ShownCounts,
  type FileAnnotation,
  type ChatUsage,
  type AnswerIdentity,
} from '../../wire/chat-response.ts';
import type { ErrorObject } from '../../wire/invalid-request.ts';

/** A citation of a web page, or of a file. */
export type ShownAnnotation =
  | { type: 'url_citation'; url: string; title: string; start_index: number; end_index: number }
  | FileAnnotation;

export interface TopLogprob {
  token: string;
  logprob: number;
  bytes: number[];
}

export interface TokenLogprob extends TopLogprob {
  top_logprobs: TopLogprob[];
}

export interface OutputText {
  type: 'output_text';
  text: string;
  annotations: ShownAnnotation[];
  logprobs: TokenLogprob[];
}

export interface RefusalPart {
  type: 'refusal';
  refusal: string;
}

export type MessagePart = OutputText | RefusalPart;

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

export interface MessageItem {
  id: string;
  type: 'message';
  status: ItemStatus;
  role: 'assistant';
  /** `commentary` or `final_answer`. Set when the item is done, or at its start if the upstream says it. */
  phase?: string;
  content: MessagePart[];
}

export interface FunctionCallItem {
  id: string;
  type: 'function_call';
  status: ItemStatus;
  name: string;
  /** Set when the tool was declared inside a namespace. */
  namespace?: string;
  call_id: string;
  arguments: string;
}

/** A call of a tool whose input is free text. */
export interface CustomToolCallItem {
  id: string;
  type: 'custom_tool_call';
  status: ItemStatus;
  name: string;
  namespace?: string;
  call_id: string;
  input: string;
}

export interface SummaryText {
  type: 'summary_text';
  text: string;
}

export interface ReasoningItem {
  id: string;
  type: 'reasoning';
  status: ItemStatus;
  summary: SummaryText[];
  /** The state of the turn so far, sealed. */
  encrypted_content?: string;
}

export type OutputItem = ReasoningItem | MessageItem | FunctionCallItem | CustomToolCallItem;

interface ResponsesUsage {
  input_tokens: number;
  input_tokens_details: ShownCounts;
  output_tokens: number;
  output_tokens_details: { reasoning_tokens: number };
  total_tokens: number;
}

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
  usage: ResponsesUsage | null;
  error: ErrorObject | null;
  incomplete_details: { reason: 'max_output_tokens' | 'content_filter' } | null;
  /** Official mode only, in the final response: what the call would have cost, in yuan. */
  quota?: number;
  /** Fields of the request, or their defaults. */
  [echoed: string]: unknown;
}

/** One event without its sequence number, which the stream renderer adds. */
export type ResponsesEvent = { type: string } & Record<string, unknown>;

/** The response object at the start of an answer, without the fields of the request that it repeats. */
export function startedResponse(identity: AnswerIdentity): ResponseObject {
  return {
    id: `resp-${identity.requestId}`,
    object: 'response',
    created_at: identity.created,
    completed_at: null,
    status: 'in_progress',
    model: identity.model,
    output: [],
    usage: null,
    error: null,
    incomplete_details: null,
  };
}

const responsesUsage = (usage: ChatUsage): ResponsesUsage => ({
  input_tokens: usage.prompt_tokens,
  input_tokens_details: shownCounts(usage.prompt_tokens_details),
  output_tokens: usage.completion_tokens,
  output_tokens_details: { reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? 0 },
  total_tokens: usage.total_tokens,
});

const incompleteReasons = { length: 'max_output_tokens', content_filter: 'content_filter' } as const;

/** Why an answer with this finish reason is incomplete; undefined if it is complete. */
export const incompleteReason = (finish: string): 'max_output_tokens' | 'content_filter' | undefined =>
  finish === 'length' || finish === 'content_filter' ? incompleteReasons[finish] : undefined;

interface AnswerEnd {
  output: OutputItem[];
  usage: ChatUsage;
  finish: string;
  /** Official mode only, in yuan. */
  quota: number | undefined;
  /** Unix seconds. */
  endedAt: number;
}

/** The response object at the end of an answer. */
export function finishedResponse(started: ResponseObject, end: AnswerEnd): ResponseObject {
  const reason = incompleteReason(end.finish);
  return {
    ...started,
    status: reason ? 'incomplete' : 'completed',
    completed_at: reason ? null : end.endedAt,
    output: end.output,
    usage: responsesUsage(end.usage),
    incomplete_details: reason ? { reason } : null,
    ...(end.quota === undefined ? {} : { quota: end.quota }),
  };
}

// The error that a response failed with, as its clients see it. OpenAI's schema has a closed list of codes there: clients
// that check answers against it refuse the whole response for another one. The log has the relay's code.

/** `ResponseError.code` of OpenAI's schema. */
const published = new Set(
  (
    'server_error rate_limit_exceeded invalid_prompt data_residency_mismatch bio_policy ' +
    'misalignment_policy_violation vector_store_timeout invalid_image invalid_image_format ' +
    'invalid_base64_image invalid_image_url image_too_large image_too_small image_parse_error ' +
    'image_content_policy_violation invalid_image_mode image_file_too_large unsupported_image_media_type ' +
    'empty_image_file failed_to_download_image image_file_not_found'
  ).split(' '),
);

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
