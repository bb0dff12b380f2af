/** Schemas of Messages and of short answers, which no other file has. As strict as `wire-schemas.ts`. */
import * as full from 'zod';
import * as z from 'zod/mini';
import { AutoTopUpBody, ManagedKey } from '../../shared/wire/public-api.ts';
import { chatChunkOf, chatCompletion, outputItem, responsesEventOf } from '../support/wire-schemas.ts';
import { itemPage, storedResponse } from '../support/stored-schemas.ts';

const text = z.string();
const count = z.int().check(z.gte(0));
const maybeText = z.nullable(text);
const quota = z.optional(z.number());

/** The relay passes on parts from vendors of the same form, so parts may have fields and types that are not listed here. */
const typed = <Type extends string>(type: Type, shape: z.core.$ZodLooseShape) =>
  z.looseObject({ type: z.literal(type), ...shape });
const others = (...known: string[]) =>
  z.looseObject({ type: text.check(z.regex(new RegExp(`^(?!(${known.join('|')})$)`))) });

const usage = z.strictObject({
  input_tokens: count,
  cache_creation_input_tokens: count,
  cache_read_input_tokens: count,
  cache_creation: z.strictObject({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count }),
  output_tokens: count,
  output_tokens_details: z.optional(z.strictObject({ thinking_tokens: count })),
  speed: z.optional(text),
  service_tier: z.optional(text),
});

const block = z.union([
  typed('text', { text }),
  typed('thinking', { thinking: text, signature: z.optional(text) }),
  typed('tool_use', { id: text, name: text, input: z.looseObject({}) }),
  others('text', 'thinking', 'tool_use'),
]);
const delta = z.union([
  typed('text_delta', { text }),
  typed('thinking_delta', { thinking: text }),
  typed('signature_delta', { signature: text }),
  typed('input_json_delta', { partial_json: z.optional(text) }),
  typed('citations_delta', { citation: z.looseObject({ type: text }) }),
  others('text_delta', 'thinking_delta', 'signature_delta', 'input_json_delta', 'citations_delta'),
]);
const stop = { stop_reason: maybeText, stop_sequence: maybeText };

export const message = z.looseObject({
  id: text.check(z.regex(/^msg_./)),
  type: z.literal('message'),
  role: z.literal('assistant'),
  model: text,
  content: z.array(block),
  ...stop,
  usage,
  quota,
});

/** @param types those that an answer can have */
export const messagesErrorOf = (types: readonly string[]) =>
  z.strictObject({
    type: z.literal('error'),
    error: z.strictObject({
      type: z.enum(types),
      message: text,
      code: text,
      param: maybeText,
      details: z.optional(z.looseObject({ error_code: z.optional(text) })),
    }),
    request_id: text,
  });

export const messagesEventOf = <Failure extends ReturnType<typeof messagesErrorOf>>(failure: Failure) =>
  z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('message_start'), message }),
    typed('content_block_start', { index: count, content_block: block }),
    typed('content_block_delta', { index: count, delta }),
    z.strictObject({ type: z.literal('content_block_stop'), index: count }),
    typed('message_delta', { delta: z.looseObject(stop), usage, quota }),
    z.strictObject({ type: z.literal('message_stop') }),
    z.strictObject({ type: z.literal('ping') }),
    failure,
  ]);

// Chat and Responses, with what an answer has only if its request asks for it.

const asked = { service_tier: z.optional(text) };
export const completion = z.extend(chatCompletion, asked);
export const chunk = chatChunkOf(asked);

const [saidItem, reasoningItem, functionCall, customCall] = outputItem.options;
const isAsync = { async: z.optional(z.literal(true)) };
export const item = full.discriminatedUnion('type', [
  saidItem,
  reasoningItem,
  functionCall.extend(isAsync),
  customCall.extend(isAsync),
  full.strictObject({ id: text, type: full.literal('compaction'), encrypted_content: text }),
]);
const [, ...givenItems] = itemPage.shape.data.element.options;
/** The list returns unknown items and the client's own ids unchanged. */
export const inputItems = z.strictObject({
  ...itemPage.shape,
  data: z.array(z.union([item, ...givenItems, z.looseObject({ type: text })])),
});

export const response = storedResponse.extend({
  output: z.array(item),
  previous_response_id: maybeText,
  store: z.boolean(),
  background_options: z.optional(z.looseObject({ completion_window: text })),
  input_transformations: z.optional(z.array(z.looseObject({}))),
});
export const responseEvent = responsesEventOf(response, item);
export const compaction = z.strictObject({
  id: text,
  object: z.literal('response.compaction'),
  created_at: z.int(),
  output: z.array(
    z.union([item, z.looseObject({ id: text, type: z.literal('message'), role: z.literal('user') })]),
  ),
  usage: response.shape.usage,
  quota,
});

export const embeddings = z.strictObject({
  object: z.literal('list'),
  data: z.array(
    z.strictObject({
      object: z.literal('embedding'),
      index: count,
      embedding: z.union([z.array(z.number()), text]),
    }),
  ),
  model: text,
  usage: z.strictObject({ prompt_tokens: count, total_tokens: count }),
  quota,
});

export const messagesCount = z.strictObject({ input_tokens: count });
export const responsesCount = z.strictObject({
  object: z.literal('response.input_tokens'),
  input_tokens: count,
});

export const health = z.strictObject({
  status: z.literal('ok'),
  version: text,
  relay_closed: z.boolean(),
  models: count,
  config_published_at: z.number(),
});

const window = z.nullable(z.strictObject({ utilization: z.number(), resets_at: text }));
export const budgetUse = z.strictObject({ five_hour: window, seven_day: window });

export const createdKey = z.strictObject({ ...ManagedKey.shape, key: text });
export const rotatedKey = z.strictObject({ ...createdKey.shape, replaces: text });
export const deletedKey = z.strictObject({ id: text, deleted: z.literal(true) });
export const startedTopUp = z.union([
  z.strictObject({ url: text }),
  z.strictObject({ auto: z.nullable(AutoTopUpBody) }),
]);
export const receivedEvent = z.strictObject({ received: z.literal(true) });
