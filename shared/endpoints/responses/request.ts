/** The schema of a Responses request, and its fields that need no translation of items. */
import * as z from 'zod/mini';
import type { ChatRequest } from '../../wire/canonical-call.ts';
import { isRecord, listIn, removeNulls, type JsonRecord } from '../../wire/json.ts';

/**
 * The body of POST /v1/responses. Known fields are checked as far as the conversion needs them; unknown and
 * null fields are ignored, because coding agents send many. The conversion checks items and their parts one
 * by one, so that errors name the item. Source: the relay's client contract, "Responses request".
 */
const optional = <T extends z.core.$ZodType>(schema: T) => z.optional(z.nullable(schema));

/** A tool never causes a refusal: tools that chat upstreams do not support are left out. */
export const ResponsesTool = z.looseObject({ type: optional(z.string()) });
export type ResponsesTool = z.infer<typeof ResponsesTool>;

export const InputItem = z.looseObject({ type: optional(z.string()), role: optional(z.string()) });
export type InputItem = z.infer<typeof InputItem>;

export const ResponsesRequest = z.looseObject({
  model: z.string().check(z.minLength(1)),
  input: z.union([z.string().check(z.minLength(1)), z.array(InputItem).check(z.minLength(1))]),
  instructions: optional(z.string()),
  max_output_tokens: optional(z.int().check(z.gte(1))),
  temperature: optional(z.number()),
  top_p: optional(z.number()),
  stream: optional(z.boolean()),
  tools: optional(z.array(ResponsesTool)),
  tool_choice: optional(z.unknown()),
  parallel_tool_calls: optional(z.boolean()),
  text: optional(z.looseObject({ format: optional(z.looseObject({ type: z.string() })) })),
  reasoning: optional(z.looseObject({ effort: optional(z.string()) })),
  include: optional(z.unknown()),
  top_logprobs: optional(z.unknown()),
  prompt: optional(z.unknown()),
  previous_response_id: optional(z.string()),
  conversation: optional(z.unknown()),
  official: optional(z.boolean()),
  /** Fields of Chat Completions that clients send here, too. An answer has room for one choice. */
  stop: optional(z.union([z.string(), z.array(z.string())])),
  n: optional(z.int().check(z.gte(1))),
});
export type ResponsesRequest = z.infer<typeof ResponsesRequest>;

/** The body of requests that want no answer: all of the input may be stored. */
export const StoredInputRequest = z.looseObject({
  ...ResponsesRequest.shape,
  input: optional(ResponsesRequest.shape.input),
});

/** Values of `include` that the relay serves itself, whatever the upstream speaks. */
const encryptedReasoning = 'reasoning.encrypted_content';
const outputLogprobs = 'message.output_text.logprobs';

/** Fields with the same name in chat, by the test of their values. A value of another kind is ignored. */
const sameNames: Record<string, (value: unknown) => boolean> = {
  temperature: (value) => typeof value === 'number',
  top_p: (value) => typeof value === 'number',
  official: (value) => typeof value === 'boolean',
  user: (value) => typeof value === 'string',
  metadata: isRecord,
  safety_identifier: (value) => typeof value === 'string',
  prompt_cache_key: (value) => typeof value === 'string',
  service_tier: (value) => typeof value === 'string',
};

/** Fields that the conversion reads elsewhere, or that are between the client and the relay alone. */
const handled = new Set([
  ...Object.keys(ResponsesRequest.shape),
  ...Object.keys(sameNames),
  'store',
  'background',
  'background_options',
  'stream_options',
  // Codex's, with the ids of its session and installation. OpenAI's schema does not have it.
  'client_metadata',
]);

export const chatFields = (request: ResponsesRequest): Partial<ChatRequest> => ({
  ...Object.fromEntries(
    Object.entries(sameNames).flatMap(([field, fits]) =>
      fits(request[field]) ? [[field, request[field]]] : [],
    ),
  ),
  ...(request.reasoning?.effort && { reasoning_effort: request.reasoning.effort }),
  ...(request.stop && { stop: request.stop }),
  ...logprobs(request),
  ...readOutputForm(request),
});

export const wantsLogprobs = (request: ResponsesRequest): boolean =>
  listIncluded(request).includes(outputLogprobs) || readTopLogprobs(request) > 0;

export const keepsState = (request: ResponsesRequest): boolean =>
  listIncluded(request).includes(encryptedReasoning);

export function readSummaryKind({ reasoning }: ResponsesRequest): string | undefined {
  const kind = reasoning?.['summary'] ?? reasoning?.['generate_summary'];
  return typeof kind === 'string' && kind !== 'none' && kind !== '' ? kind : undefined;
}

/**
 * Fields that upstreams of the same form get as the client wrote them: those that the relay does not know, and the rest of
 * `include`.
 */
export function findUnknownFields(request: ResponsesRequest): JsonRecord {
  const include = listIncluded(request).filter(
    (each) => each !== encryptedReasoning && each !== outputLogprobs,
  );
  const unknown = Object.entries(removeNulls(request)).filter(([field]) => !handled.has(field));
  const reasoning = Object.entries(removeNulls(request.reasoning ?? {})).filter(
    ([field, value]) => !servedReasoning.has(field) && value !== 'standard',
  );
  return {
    ...Object.fromEntries(unknown),
    ...(reasoning.length > 0 && { reasoning: Object.fromEntries(reasoning) }),
    ...(include.length > 0 && { include }),
  };
}

/** Fields of `reasoning` that the relay reads or serves. */
const servedReasoning = new Set(['effort', 'summary', 'generate_summary', 'context']);

/**
 * Fields that the relay serves itself: the text of the reasoning is shown as its summary, and the reasoning of all turns
 * goes up again.
 */
export function selectServedFields(request: ResponsesRequest): JsonRecord {
  const { effort: _effort, ...reasoning } = removeNulls(request.reasoning ?? {});
  return Object.keys(reasoning).length > 0 ? { reasoning } : {};
}

const listIncluded = ({ include }: ResponsesRequest): unknown[] => listIn(include);

export const readTopLogprobs = ({ top_logprobs: top }: ResponsesRequest): number =>
  typeof top === 'number' && Number.isInteger(top) ? top : 0;

function logprobs(request: ResponsesRequest): Partial<ChatRequest> {
  if (!wantsLogprobs(request)) return {};
  const top = readTopLogprobs(request);
  return { logprobs: true, ...(top > 0 && { top_logprobs: top }) };
}

/** Responses has the fields of the JSON schema beside `type`; chat has them under `json_schema`. */
function readOutputForm({ text }: ResponsesRequest): Partial<ChatRequest> {
  const verbosity = text?.['verbosity'];
  const form: Partial<ChatRequest> = typeof verbosity === 'string' ? { verbosity } : {};
  const format = text?.format;
  if (!format || format.type === 'text') return form;
  if (format.type !== 'json_schema') return { ...form, response_format: { type: format.type } };
  const schema: JsonRecord = {};
  for (const field of ['name', 'description', 'schema', 'strict'])
    if (format[field] !== undefined && format[field] !== null) schema[field] = format[field];
  return { ...form, response_format: { type: 'json_schema', json_schema: schema } };
}
