/** The canonical call: a request in the one form that all endpoints write and all dialects read. */
import * as z from 'zod/mini';
import { type JsonRecord, asRecord, isRecord, recordsIn, textIn } from './json.ts';
import { calledNameMax } from './ids.ts';
import type { FoundMedium } from './media-walk.ts';
import type { HeldThread } from './turn-state.ts';

/** A call as every upstream dialect reads it, whichever endpoint it came through. */
export interface CanonicalCall {
  /** The name of the endpoint in whose form the client wrote the call. */
  readonly form: string;
  /** The known fields, in the form of Chat Completions. */
  readonly request: ChatRequest;
  /**
   * Fields of the client's form that the relay does not know. They go up unchanged to an upstream of the same
   * form and are dropped for others.
   */
  readonly unknown: JsonRecord;
  /**
   * Fields of the client's form that the endpoint serves whatever the upstream speaks. They go up to an upstream of the
   * same form, and no other one misses them. Absent: none.
   */
  readonly served?: JsonRecord;
  /**
   * How the conversation began, where the request alone does not say it: each turn of a stored conversation may have
   * another system message. Absent: with the messages of the request.
   */
  readonly beginning?: readonly ChatMessage[] | undefined;
  readonly items?: CarriedItems | undefined;
  /** Fields of the client's messages that few upstreams know. The client learns which of them did not go up. */
  readonly messageFields?: readonly string[] | undefined;
  /** Media and references to media in the call, found once for all readers. */
  readonly media?: readonly FoundMedium[] | undefined;
  /** The paths of media in the client's body that the call does not have, with `[]` for positions. */
  readonly lostMedia?: readonly string[] | undefined;
  /** The first message, if it is a field of the client's form that is of this call alone there. */
  readonly instructions?: ChatMessage | undefined;
  /** The call as its client wrote it, for an upstream of the same form. */
  readonly native?: NativeCall | undefined;
  /** The earlier conversation, if the vendor stores it. Otherwise the request has all messages. */
  readonly thread?: HeldThread | undefined;
  /** The inputs to embed. The request then has no messages. */
  readonly embedding?: EmbeddingInput | undefined;
  /** For errors: the client's names of those fields of `request` that its form names differently. */
  readonly clientNames?: Readonly<Record<string, string>> | undefined;
  /**
   * A summary of the conversation is asked for, to go on from, by the last item of the input or at a path of its own. The last
   * message says so in words. Absent: the next turn is.
   */
  readonly compacts?: 'item' | 'path' | undefined;
  /** The client's own name for the conversation, for the choice of the candidate alone. */
  readonly conversation?: string | undefined;
}

export interface EmbeddingInput {
  /** Texts, or the tokens of texts. None is empty. */
  readonly inputs: readonly (string | readonly number[])[];
  /** How many numbers each vector is to have. */
  readonly dimensions: number | undefined;
}

/** Bounds the numbers of one answer: 2,048 vectors of 4,096, which are 32 MB in memory. */
export const vectorNumbersMax = 2_048 * 4_096;

/** A body that goes up as it came, but for what the relay decides: model, limit, and what money and isolation need. */
export interface NativeCall {
  /** The fields that `request` says in other words, but for those that are `served`. All others are `unknown`. */
  readonly body: JsonRecord;
  /** Texts that no message and no tool of `request` has, for the estimate of the input. */
  readonly counted: readonly JsonRecord[];
  /** Fields that upstreams of other forms miss, for the header that names them. */
  readonly lost: readonly string[];
  /** The version of the API and its features that the body was written for. */
  readonly headers: { readonly version?: string; readonly betas?: readonly string[] };
  /** The messages of the canonical call that stand in the body. Others were added since. */
  readonly known: ReadonlySet<ChatMessage>;
  /** Content or a field that only this form has and that must not be left out. */
  readonly only?: OwnForm | undefined;
}

export interface OwnForm {
  readonly param: string;
  readonly message: string;
  /** `param` is a field of the body. Even in this form the call is refused if the field is not sent. */
  readonly isField?: true;
  readonly details?: JsonRecord | undefined;
}

/** Edits of the context that only clear what is old make no answer dearer. Others, such as a summary, are runs of their own. */
export function onlyClears(management: unknown): boolean {
  const { edits, ...others } = asRecord(management);
  const list = recordsIn(edits);
  const isClearing = list.length > 0 && list.every(({ type }) => textIn(type).startsWith('clear_'));
  return isClearing && Object.keys(others).length === 0;
}

/** Parts of a conversation in the client's form that no message can hold. They go up in their place to an upstream of the same form. */
export interface CarriedItems {
  /** By the message that they follow. */
  readonly after: ReadonlyMap<ChatMessage | undefined, readonly JsonRecord[]>;
  /** By the message that an item is elsewhere. */
  readonly instead: ReadonlyMap<ChatMessage, JsonRecord>;
  /** The tools of the request that an item declares, with their item. Elsewhere they are as the others. */
  readonly tools: ReadonlyMap<ChatTool, JsonRecord>;
  /** The calls that the model does not wait for. Elsewhere they are as the others. */
  readonly asyncCalls?: ReadonlySet<ChatToolCall>;
  /** The results of such calls that came later, by what stands in their place. Elsewhere they are behind their calls. */
  readonly late?: ReadonlyMap<JsonRecord, ChatMessage>;
  /** The effort that the request asks for besides its items. Elsewhere the effort of the last item counts. */
  readonly effort: string | undefined;
  /** Fields that upstreams of other forms miss, for the header that names them. */
  readonly lost: readonly string[];
}

/**
 * The body of POST /v1/chat/completions. Known fields are checked; unknown fields are kept and sent to the
 * upstream. Null means absent. Numbers must be finite; the upstream checks their ranges. Source: the relay's
 * client contract, "Chat request"; the other fields are OpenAI's.
 */
const optional = <T extends z.core.$ZodType>(schema: T) => z.optional(z.nullable(schema));
const finite = z.number();
/** Its members are the client's own, and may be many: the schema of a loose object takes microseconds for each. */
const freeMap = z.custom<JsonRecord>(isRecord);
const tokenLimit = z.int().check(z.gte(1));
const calledName = z.string().check(z.maxLength(calledNameMax));
const declaredName = calledName.check(z.minLength(1));

export const ChatTool = z.looseObject({
  type: z.string(),
  function: z.optional(
    z.looseObject({
      name: declaredName,
      description: optional(z.string()),
      parameters: optional(freeMap),
    }),
  ),
  custom: z.optional(
    z.looseObject({
      name: declaredName,
      description: optional(z.string()),
      format: optional(freeMap),
    }),
  ),
});
export type ChatTool = z.infer<typeof ChatTool>;

export const ChatToolCall = z.looseObject({
  id: optional(z.string()),
  type: optional(z.string()),
  index: optional(finite),
  function: z.optional(z.looseObject({ name: calledName, arguments: optional(z.string()) })),
  custom: z.optional(z.looseObject({ name: calledName, input: optional(z.string()) })),
});
export type ChatToolCall = z.infer<typeof ChatToolCall>;

export const ChatContentPart = z.looseObject({
  type: z.string(),
  text: optional(z.string()),
  image_url: optional(z.looseObject({ url: z.string(), detail: optional(z.string()) })),
  /** `file_url` is no field of OpenAI's Chat Completions: a file of a Responses request by its URL. */
  file: optional(
    z.looseObject({
      file_data: optional(z.string()),
      file_url: optional(z.string()),
      file_id: optional(z.string()),
      filename: optional(z.string()),
    }),
  ),
});
export type ChatContentPart = z.infer<typeof ChatContentPart>;

/** Clients send empty text parts, and many vendors refuse them. */
export const isEmptyText = ({ type, text }: ChatContentPart): boolean => type === 'text' && text === '';

const ChatRole = z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']);
type ChatRole = z.infer<typeof ChatRole>;

export const ChatMessage = z.looseObject({
  role: ChatRole,
  content: optional(z.union([z.string(), z.array(ChatContentPart)])),
  name: optional(calledName),
  function_call: optional(z.looseObject({ name: calledName, arguments: optional(z.string()) })),
  tool_call_id: optional(z.string()),
  tool_calls: optional(z.array(ChatToolCall)),
  /** The phase of an assistant message in Responses: `commentary` or `final_answer`. */
  phase: optional(z.string()),
});
export type ChatMessage = z.infer<typeof ChatMessage>;

/** Treats a part without a text as empty. */
export function joinTexts(content: ChatMessage['content'], separator: string): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map(({ type, text }) => (type === 'text' ? (text ?? '') : '')).join(separator);
}

const LegacyFunction = z.looseObject({
  name: declaredName,
  description: optional(z.string()),
  parameters: optional(freeMap),
});

export const ChatRequest = z.looseObject({
  model: z.string().check(z.minLength(1)),
  messages: z.array(ChatMessage).check(z.minLength(1)),
  stream: optional(z.boolean()),
  stream_options: optional(z.looseObject({ include_usage: optional(z.boolean()) })),
  max_tokens: optional(tokenLimit),
  max_completion_tokens: optional(tokenLimit),
  n: optional(z.int().check(z.gte(1), z.lte(8))),
  temperature: optional(finite),
  top_p: optional(finite),
  top_k: optional(z.int()),
  presence_penalty: optional(finite),
  frequency_penalty: optional(finite),
  repetition_penalty: optional(finite),
  tools: optional(z.array(ChatTool)),
  tool_choice: optional(z.unknown()),
  /** OpenAI's older form of `tools` and `tool_choice`. The canonical call has the newer form alone. */
  functions: optional(z.array(LegacyFunction)),
  function_call: optional(z.unknown()),
  response_format: optional(z.looseObject({ type: z.string() })),
  reasoning_effort: optional(z.string()),
  verbosity: optional(z.string()),
  parallel_tool_calls: optional(z.boolean()),
  seed: optional(z.int()),
  logprobs: optional(z.boolean()),
  top_logprobs: optional(z.int()),
  service_tier: optional(z.string()),
  prompt_cache_key: optional(z.string()),
  safety_identifier: optional(z.string()),
  user: optional(z.string()),
  metadata: optional(freeMap),
  stop: optional(z.union([z.string(), z.array(z.string())])),
  official: optional(z.boolean()),
});
export type ChatRequest = z.infer<typeof ChatRequest>;

/** By which a client names its end user: of several names, the most exact one. */
export function endUserOf({ metadata, safety_identifier: safety, user }: ChatRequest): string | undefined {
  const names = [asRecord(metadata)['user_id'], safety, user];
  return names.find((name): name is string => typeof name === 'string' && name !== '');
}

export const chatFieldNames: ReadonlySet<string> = new Set(Object.keys(ChatRequest.shape));

export function splitKnown(body: ChatRequest): { request: ChatRequest; unknown: JsonRecord } {
  const entries = Object.entries(body);
  const unknown = entries.filter(([field]) => !chatFieldNames.has(field));
  if (unknown.length === 0) return { request: body, unknown: {} };
  const request = Object.fromEntries(entries.filter(([field]) => chatFieldNames.has(field))) as ChatRequest;
  return { request, unknown: Object.fromEntries(unknown) };
}

/**
 * Memory of the log probabilities of an answer, by token and by entry: as JSON where they pass through, in memory where
 * they are kept to the end of the answer. Measured with OpenAI's form: a token, its probability and its bytes.
 */
const passedOn = { bytesMax: 64 * 1024 * 1024, token: 250, entry: 72 };
/** Five times this was measured in a function that kept it and wrote it out. It has 256 MB, 65 of them for itself. */
export const keptToEnd = { bytesMax: 16 * 1024 * 1024, token: 0, entry: 200 };

/**
 * The most tokens of one choice whose log probabilities the relay can hold. Undefined: none were asked for. Only a
 * stream of Chat Completions passes them on; no other canonical call says `stream`.
 */
export function logprobTokensMax({
  logprobs,
  top_logprobs: top,
  n,
  stream,
}: ChatRequest): number | undefined {
  if (logprobs !== true) return undefined;
  const { bytesMax, token, entry } = stream === true ? passedOn : keptToEnd;
  return Math.floor(bytesMax / ((n ?? 1) * (token + entry * (1 + Math.max(top ?? 0, 0)))));
}

/** The largest window of models that read files: no call has more input that is not text. */
export const windowTokens = 1_050_000;
