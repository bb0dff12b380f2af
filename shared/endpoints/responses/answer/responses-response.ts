/**
 * Types of the answers of POST /v1/responses: the response object and the events of its stream. Source: the
 * relay's client contract, "Responses response" and "Responses stream event types", and the fields that
 * OpenAI's and Open Responses' schemas require.
 */
import type { FileAnnotation } from '../../../wire/chat-response.ts';
import type { ErrorObject } from '../../../wire/public/error-body.ts';

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

export interface Refusal {
  type: 'refusal';
  refusal: string;
}

export type MessagePart = OutputText | Refusal;

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

export interface ResponsesUsage {
  input_tokens: number;
  input_tokens_details: { cached_tokens: number; cache_write_tokens: number; cache_write_1h_tokens?: number };
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
