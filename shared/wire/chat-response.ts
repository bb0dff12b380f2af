/**
 * The answers of POST /v1/chat/completions. Only types: the relay builds these field by field and never
 * parses its own output; `test/support/wire-schemas.ts` holds the schemas that tests validate against.
 * Source: the relay's client contract, "Chat response" and "Chat stream chunk", and OpenAI's required fields.
 */

/** Token counts. Cached and reasoning tokens are inside the totals, never on top of them. */
export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens: number };
  completion_tokens_details?: { reasoning_tokens: number };
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/** A whole tool call, as it stands in a message. */
export interface ToolCall {
  index: number;
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

/** A piece of a tool call: the first piece of an index carries id, type and name. */
export interface ToolCallDelta {
  index: number;
  id?: string;
  type?: 'function';
  function: { name?: string; arguments?: string };
}

export interface ChatDelta {
  role?: 'assistant';
  content?: string | null;
  reasoning_content?: string;
  refusal?: string;
  tool_calls?: ToolCallDelta[];
}

export interface ChunkChoice {
  index: number;
  delta: ChatDelta;
  logprobs: unknown;
  finish_reason: FinishReason | null;
}

/**
 * One piece of a streamed answer, and the canonical form in which every answer travels through the relay,
 * streaming or not. In canonical form a finish chunk has an empty delta, and usage comes last in a chunk
 * of its own whose `choices` is empty; the renderer decides how usage and `quota` reach the client.
 */
export interface ChatChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  choices: ChunkChoice[];
  usage: ChatUsage | null;
  /** Official mode only: what the call would have cost, in yuan. Null on running chunks. */
  quota?: number | null;
}

export interface AssistantMessage {
  role: 'assistant';
  content: string | null;
  reasoning_content?: string;
  refusal: string | null;
  tool_calls: ToolCall[] | null;
}

export interface ChatCompletion {
  id: string;
  object: 'chat.completion';
  created: number;
  model: string;
  choices: { index: number; message: AssistantMessage; logprobs: unknown; finish_reason: FinishReason }[];
  usage: ChatUsage;
  /** Official mode only: what the call would have cost, in yuan. */
  quota?: number;
}

/** What all chunks of one answer share. `model` is the public base name, whatever the upstream calls it. */
export interface AnswerIdentity {
  /** The request id; chunks carry it behind `chatcmpl-`. */
  requestId: string;
  /** Unix seconds. */
  created: number;
  model: string;
}
