import * as z from 'zod';

/**
 * Schemas of the relay's output, with exactly the fields that OpenAI's and Open Responses' schemas require: a missing,
 * additional or mistyped field fails the tests that parse emitted output.
 */
const count = z.int().min(0);
const seconds = z.int().min(1);

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
  prompt_tokens_details: z.strictObject({
    cached_tokens: count,
    cache_write_tokens: count,
    cache_write_1h_tokens: z.int().min(1).optional(),
  }),
  completion_tokens_details: z.strictObject({ reasoning_tokens: count }),
});
const finishReason = z.enum(['stop', 'length', 'tool_calls', 'content_filter']);
const logprobs = z.strictObject({
  content: z.array(z.unknown()).nullable(),
  refusal: z.array(z.unknown()).nullable(),
});
const urlCitation = z.strictObject({
  type: z.literal('url_citation'),
  url_citation: z.strictObject({ url: z.string(), title: z.string(), start_index: count, end_index: count }),
});
const extra = { extra_content: z.unknown().optional() };
/** Upstream fields beyond OpenAI's, for clients that send them back or show them. */
const beyond = {
  reasoning_details: z.array(z.unknown()).min(1).optional(),
  annotations: z.array(urlCitation).min(1).optional(),
  images: z.array(z.unknown()).min(1).optional(),
};
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
              z.union([
                z.strictObject({
                  index: count,
                  id: z.string().min(1),
                  type: z.literal('function'),
                  function: z.strictObject({ name: z.string(), arguments: z.string() }),
                  ...extra,
                }),
                z.strictObject({
                  index: count,
                  id: z.string().min(1),
                  type: z.literal('custom'),
                  custom: z.strictObject({ name: z.string(), input: z.string() }),
                  ...extra,
                }),
              ]),
            )
            .min(1)
            .nullable(),
          ...beyond,
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
  type: z.enum(['function', 'custom']).optional(),
  function: z.strictObject({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
  custom: z.strictObject({ name: z.string().optional(), input: z.string().optional() }).optional(),
  ...extra,
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
        ...beyond,
      }),
      finish_reason: finishReason.nullable(),
    }),
  ),
  usage: chatUsage.nullable(),
  quota: z.number().nullable().optional(),
});
/** A chunk has choices or an error, never both. */
export const chatChunkOf = (more: z.core.$ZodLooseShape) =>
  z.union([chunk.extend(more), z.strictObject({ ...chunkIdentity, error: errorObject })]);
export const chatChunk = chatChunkOf({});

const range = { start_index: count, end_index: count };
const file = { file_id: z.string(), filename: z.string() };
const annotation = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('url_citation'), url: z.string(), title: z.string(), ...range }),
  z.strictObject({ type: z.literal('file_citation'), ...file, index: count }),
  z.strictObject({ type: z.literal('file_path'), file_id: z.string(), index: count }),
  z.strictObject({
    type: z.literal('container_file_citation'),
    container_id: z.string(),
    ...file,
    ...range,
  }),
]);
const oneLogprob = { token: z.string(), logprob: z.number(), bytes: z.array(z.int()) };
const tokenLogprobs = z.array(
  z.strictObject({ ...oneLogprob, top_logprobs: z.array(z.strictObject(oneLogprob)) }),
);
const outputText = z.strictObject({
  type: z.literal('output_text'),
  text: z.string(),
  annotations: z.array(annotation),
  logprobs: tokenLogprobs,
});
const refusal = z.strictObject({ type: z.literal('refusal'), refusal: z.string() });
export const messagePart = z.discriminatedUnion('type', [outputText, refusal]);
const summaryText = z.strictObject({ type: z.literal('summary_text'), text: z.string() });
const itemCommon = {
  id: z.string().regex(/^(msg|fc|ctc|rs)_./),
  status: z.enum(['in_progress', 'completed', 'incomplete']),
};
const callCommon = {
  ...itemCommon,
  name: z.string(),
  namespace: z.string().optional(),
  call_id: z.string().min(1),
};
export const outputItem = z.discriminatedUnion('type', [
  z.strictObject({
    ...itemCommon,
    type: z.literal('message'),
    role: z.literal('assistant'),
    phase: z.enum(['commentary', 'final_answer']).optional(),
    content: z.array(messagePart),
  }),
  z.strictObject({
    ...itemCommon,
    type: z.literal('reasoning'),
    summary: z.array(summaryText).max(1),
    encrypted_content: z.string().min(1).optional(),
  }),
  z.strictObject({ ...callCommon, type: z.literal('function_call'), arguments: z.string() }),
  z.strictObject({ ...callCommon, type: z.literal('custom_tool_call'), input: z.string() }),
]);

const responseUsage = z.strictObject({
  input_tokens: count,
  input_tokens_details: z.strictObject({
    cached_tokens: count,
    cache_write_tokens: count,
    cache_write_1h_tokens: z.int().min(1).optional(),
  }),
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

/**
 * The error codes of a response: `ResponseError.code` of OpenAI's schema, and the two that coding agents also act on.
 */
const responseErrorCode = z.enum([
  ...(
    'server_error rate_limit_exceeded invalid_prompt data_residency_mismatch bio_policy misalignment_policy_violation ' +
    'vector_store_timeout invalid_image invalid_image_format invalid_base64_image invalid_image_url image_too_large ' +
    'image_too_small image_parse_error image_content_policy_violation invalid_image_mode image_file_too_large ' +
    'unsupported_image_media_type empty_image_file failed_to_download_image image_file_not_found'
  ).split(' '),
  'context_length_exceeded',
  'insufficient_quota',
]);
const responseError = errorObject.extend({ code: responseErrorCode });

export const responseObject = z.strictObject({
  id: z.string().regex(/^resp-./),
  object: z.literal('response'),
  created_at: seconds,
  completed_at: seconds.nullable(),
  status: z.enum(['in_progress', 'completed', 'incomplete', 'failed']),
  model: z.string().min(1),
  output: z.array(outputItem),
  usage: responseUsage.nullable(),
  error: responseError.nullable(),
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
  max_tool_calls: count.nullable(),
  presence_penalty: z.number(),
  previous_response_id: z.null(),
  prompt_cache_key: z.string().nullable(),
  reasoning: z.strictObject({ effort: z.string().nullable(), summary: z.string().nullable() }),
  safety_identifier: z.string().nullable(),
  service_tier: z.string(),
  store: z.literal(false),
  text: z.looseObject({ format: z.looseObject({ type: z.string() }) }),
  top_logprobs: count,
  truncation: z.enum(['auto', 'disabled']),
  quota: z.number().optional(),
});

const ofItem = { item_id: itemCommon.id, output_index: count };
const ofPart = { ...ofItem, content_index: count };
const ofSummary = { ...ofItem, summary_index: count };

function event<const Type extends string, Shape extends z.ZodRawShape>(type: Type, shape: Shape) {
  return z.strictObject({ type: z.literal(type), sequence_number: count, ...shape });
}

/** The events of a response in this form. */
export const responsesEventOf = <Response extends z.ZodType, Item extends z.ZodType>(
  response: Response,
  item: Item,
) =>
  z.discriminatedUnion('type', [
    event('response.created', { response }),
    event('response.in_progress', { response }),
    event('response.completed', { response }),
    event('response.failed', { response, error: responseError }),
    event('response.output_item.added', { output_index: count, item }),
    event('response.output_item.done', { output_index: count, item }),
    event('response.content_part.added', { ...ofPart, part: messagePart }),
    event('response.content_part.done', { ...ofPart, part: messagePart }),
    event('response.output_text.delta', { ...ofPart, delta: z.string(), logprobs: tokenLogprobs }),
    event('response.output_text.done', { ...ofPart, text: z.string(), logprobs: tokenLogprobs }),
    event('response.output_text.annotation.added', { ...ofPart, annotation_index: count, annotation }),
    event('response.refusal.delta', { ...ofPart, delta: z.string() }),
    event('response.refusal.done', { ...ofPart, refusal: z.string() }),
    event('response.reasoning_summary_part.added', { ...ofSummary, part: summaryText }),
    event('response.reasoning_summary_part.done', { ...ofSummary, part: summaryText }),
    event('response.reasoning_summary_text.delta', { ...ofSummary, delta: z.string() }),
    event('response.reasoning_summary_text.done', { ...ofSummary, text: z.string() }),
    event('response.function_call_arguments.delta', { ...ofItem, delta: z.string() }),
    event('response.function_call_arguments.done', { ...ofItem, name: z.string(), arguments: z.string() }),
    event('response.custom_tool_call_input.delta', { ...ofItem, delta: z.string() }),
    event('response.custom_tool_call_input.done', { ...ofItem, input: z.string() }),
  ]);

export const responsesEvent = responsesEventOf(responseObject, outputItem);
