/**
 * Types of the answers of POST /v1/chat/completions. There are no schemas here, because the relay never
 * parses its own output; `test/support/wire-schemas.ts` holds the schemas that tests use. Source: the relay's
 * client contract, "Chat response" and "Chat stream chunk", and OpenAI's required fields.
 */

/** Token counts. The totals include cached and reasoning tokens. */
export interface ChatUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  prompt_tokens_details?: { cached_tokens: number };
  completion_tokens_details?: { reasoning_tokens: number };
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter';

/** A complete tool call in a message. */
export interface ToolCall {
  index: number;
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

/** A piece of a tool call. The first piece of an index carries id, type and name. */
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
 * One chunk of a streamed answer. It is also the canonical form of every answer inside the relay, streamed or
 * not. In canonical form a finish chunk has an empty delta, and usage comes last, in a separate chunk with
 * empty `choices`. The renderer decides how usage and `quota` are sent to the client.
 */
export interface ChatChunk {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  choices: ChunkChoice[];
  usage: ChatUsage | null;
  /** Official mode only: what the call would have cost, in yuan. Null on chunks before the end. */
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

/** The fields that all chunks of one answer share. `model` is the public base name, not the upstream's. */
export interface AnswerIdentity {
  /** The request id. The id of each chunk is `chatcmpl-` followed by it. */
  requestId: string;
  /** Unix seconds. */
  created: number;
  model: string;
}
