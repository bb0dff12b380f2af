import * as z from 'zod';

/**
 * What the relay sends, as schemas with every field that OpenAI's and Open Responses' schemas require, and no other:
 * a field that is missing, added or of another type fails the tests that parse what was emitted.
 */
const count = z.int().min(0);
const seconds = z.int().min(1);
const empty = z.array(z.never());

export const errorObject = z.strictObject({
  message: z.string().min(1),
  type: z.string().regex(/_error$/),
  param: z.string().nullable(),
  code: z.string().min(1),
});
export const errorBody = z.strictObject({ error: errorObject });

const chatUsage = z.strictObject({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  prompt_tokens_details: z.strictObject({ cached_tokens: count }),
  completion_tokens_details: z.strictObject({ reasoning_tokens: count }),
});
const finishReason = z.enum(['stop', 'length', 'tool_calls', 'content_filter']);
const logprobs = z.strictObject({
  content: z.array(z.unknown()).nullable(),
  refusal: z.array(z.unknown()).nullable(),
});
const choice = { index: count, logprobs: logprobs.nullable() };
const chatIdentity = { id: z.string().regex(/^chatcmpl-./), created: seconds, model: z.string().min(1) };

export const chatCompletion = z.strictObject({
  ...chatIdentity,
  object: z.literal('chat.completion'),
  choices: z
    .array(
      z.strictObject({
        ...choice,
        message: z.strictObject({
          role: z.literal('assistant'),
          content: z.string().nullable(),
          reasoning_content: z.string().optional(),
          refusal: z.string().nullable(),
          tool_calls: z
            .array(
              z.strictObject({
                index: count,
                id: z.string().min(1),
                type: z.literal('function'),
                function: z.strictObject({ name: z.string(), arguments: z.string() }),
              }),
            )
            .min(1)
            .nullable(),
        }),
        finish_reason: finishReason,
      }),
    )
    .min(1),
  usage: chatUsage,
  quota: z.number().optional(),
});

const chunkIdentity = { ...chatIdentity, object: z.literal('chat.completion.chunk') };
const toolCallDelta = z.strictObject({
  index: count,
  id: z.string().min(1).optional(),
  type: z.literal('function').optional(),
  function: z.strictObject({ name: z.string().optional(), arguments: z.string().optional() }),
});
const chunk = z.strictObject({
  ...chunkIdentity,
  choices: z.array(
    z.strictObject({
      ...choice,
      delta: z.strictObject({
        role: z.literal('assistant').optional(),
        content: z.string().optional(),
        reasoning_content: z.string().optional(),
        refusal: z.string().optional(),
        tool_calls: z.array(toolCallDelta).min(1).optional(),
      }),
      finish_reason: finishReason.nullable(),
    }),
  ),
  usage: chatUsage.nullable(),
  quota: z.number().nullable().optional(),
});
/** A chunk has choices or an error, never both. */
export const chatChunk = z.union([chunk, z.strictObject({ ...chunkIdentity, error: errorObject })]);

const outputText = z.strictObject({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: empty,
  logprobs: empty,
});
const itemCommon = {
  id: z.string().regex(/^(msg|fc|ctc)_./),
  status: z.enum(['in_progress', 'completed', 'incomplete']),
};
const callCommon = {
  ...itemCommon,
  name: z.string(),
  namespace: z.string().optional(),
  call_id: z.string().min(1),
};
const outputItem = z.discriminatedUnion('type', [
  z.strictObject({
    ...itemCommon,
    type: z.literal('message'),
    role: z.literal('assistant'),
    content: z.array(outputText).max(1),
  }),
  z.strictObject({ ...callCommon, type: z.literal('function_call'), arguments: z.string() }),
  z.strictObject({ ...callCommon, type: z.literal('custom_tool_call'), input: z.string() }),
]);

const responseUsage = z.strictObject({
  input_tokens: count,
  input_tokens_details: z.strictObject({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: count,
  output_tokens_details: z.strictObject({ reasoning_tokens: count }),
  total_tokens: count,
});
const echoedTool = z.union([
  z.looseObject({
    type: z.literal('function'),
    name: z.string(),
    description: z.string().nullable(),
    parameters: z.looseObject({}).nullable(),
    strict: z.boolean().nullable(),
  }),
  z.looseObject({ type: z.string().regex(/^(?!function$)/) }),
]);

export const responseObject = z.strictObject({
  id: z.string().regex(/^resp-./),
  object: z.literal('response'),
  created_at: seconds,
  completed_at: seconds.nullable(),
  status: z.enum(['in_progress', 'completed', 'incomplete', 'failed']),
  model: z.string().min(1),
  output: z.array(outputItem),
  usage: responseUsage.nullable(),
  error: errorObject.nullable(),
  incomplete_details: z.strictObject({ reason: z.enum(['max_output_tokens', 'content_filter']) }).nullable(),
  instructions: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
  parallel_tool_calls: z.boolean(),
  temperature: z.number(),
  tool_choice: z.union([z.string(), z.looseObject({ type: z.string() })]),
  tools: z.array(echoedTool),
  top_p: z.number(),
  background: z.literal(false),
  frequency_penalty: z.number(),
  max_output_tokens: count.nullable(),
  max_tool_calls: z.null(),
  presence_penalty: z.number(),
  previous_response_id: z.null(),
  prompt_cache_key: z.string().nullable(),
  reasoning: z.strictObject({ effort: z.string().nullable(), summary: z.null() }),
  safety_identifier: z.string().nullable(),
  service_tier: z.literal('default'),
  store: z.literal(false),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }) }),
  top_logprobs: z.literal(0),
  truncation: z.literal('disabled'),
  quota: z.number().optional(),
});

const ofItem = { item_id: itemCommon.id, output_index: count };
const ofPart = { ...ofItem, content_index: count };

function event<const Type extends string, Shape extends z.ZodRawShape>(type: Type, shape: Shape) {
  return z.strictObject({ type: z.literal(type), sequence_number: count, ...shape });
}

export const responsesEvent = z.discriminatedUnion('type', [
  event('response.created', { response: responseObject }),
  event('response.in_progress', { response: responseObject }),
  event('response.completed', { response: responseObject }),
  event('response.failed', { response: responseObject, error: errorObject }),
  event('response.output_item.added', { output_index: count, item: outputItem }),
  event('response.output_item.done', { output_index: count, item: outputItem }),
  event('response.content_part.added', { ...ofPart, part: outputText }),
  event('response.content_part.done', { ...ofPart, part: outputText }),
  event('response.output_text.delta', { ...ofPart, delta: z.string(), logprobs: empty }),
  event('response.output_text.done', { ...ofPart, text: z.string(), logprobs: empty }),
  event('response.function_call_arguments.delta', { ...ofItem, delta: z.string() }),
  event('response.function_call_arguments.done', { ...ofItem, name: z.string(), arguments: z.string() }),
  event('response.custom_tool_call_input.delta', { ...ofItem, delta: z.string() }),
  event('response.custom_tool_call_input.done', { ...ofItem, input: z.string() }),
]);
