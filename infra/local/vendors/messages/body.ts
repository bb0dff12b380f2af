/**
 * The body of a Messages request as in Anthropic's reference and SDK (`MessageCreateParamsBase`), which reject any other
 * field. Load this file with the first request only: loading the schema library takes 40 ms.
 */
import * as z from 'zod/mini';

const allowMissing = <Schema extends z.ZodMiniType>(schema: Schema) => z.optional(z.nullable(schema));
/** An object of this `type` with exactly these fields. */
const declareKind = <Type extends string, Shape extends Record<string, z.ZodMiniType>>(
  type: Type,
  shape: Shape,
) => z.strictObject({ type: z.literal(type), ...shape });
const anything = z.record(z.string(), z.unknown());
const flag = z.optional(z.boolean());
const mark = declareKind('ephemeral', {
  ttl: z.optional(z.enum(['5m', '1h'])),
  scope: z.optional(z.string()),
});
const cached = { cache_control: allowMissing(mark) };
const optionalText = allowMissing(z.string());

const textBlock = declareKind('text', {
  text: z.string(),
  ...cached,
  citations: allowMissing(z.array(z.unknown())),
});
const source = z.union([
  declareKind('base64', { media_type: z.string(), data: z.string() }),
  declareKind('url', { url: z.string() }),
  declareKind('file', { file_id: z.string() }),
  declareKind('text', { media_type: z.literal('text/plain'), data: z.string() }),
]);
const image = declareKind('image', { source, ...cached });
const document = declareKind('document', {
  source,
  title: optionalText,
  context: optionalText,
  citations: allowMissing(z.strictObject({ enabled: z.boolean() })),
  ...cached,
});
const reference = declareKind('tool_reference', { tool_name: z.string(), ...cached });
const tool = z.strictObject({
  type: allowMissing(z.literal('custom')),
  name: z.string(),
  description: z.optional(z.string()),
  input_schema: z.looseObject({ type: z.literal('object') }),
  strict: flag,
  defer_loading: flag,
  eager_input_streaming: allowMissing(z.boolean()),
  input_examples: z.optional(z.array(anything)),
  allowed_callers: z.optional(z.array(z.string())),
  ...cached,
});

const block = z.discriminatedUnion('type', [
  textBlock,
  image,
  document,
  // Clients send a block of an answer back with all its fields.
  declareKind('tool_use', {
    id: z.string(),
    name: z.string(),
    input: anything,
    caller: z.optional(z.looseObject({ type: z.string() })),
    toolset_name: allowMissing(z.string()),
    ...cached,
  }),
  declareKind('tool_result', {
    tool_use_id: z.string(),
    content: z.optional(
      z.union([z.string(), z.array(z.discriminatedUnion('type', [textBlock, image, document, reference]))]),
    ),
    is_error: flag,
    ...cached,
  }),
  declareKind('thinking', { thinking: z.string(), signature: z.string() }),
  declareKind('redacted_thinking', { data: z.string() }),
  declareKind('tool_addition', { tool: declareKind('tool_definition', { definition: tool }) }),
]);

const shown = {
  display: allowMissing(z.enum(['summarized', 'omitted'])),
  /** Part of a beta: whether a block of another conversation is an error or is dropped. */
  block_binding: allowMissing(
    z.strictObject({ prefix_mismatch_behavior: allowMissing(z.enum(['error', 'drop_block'])) }),
  ),
};
const thinking = z.discriminatedUnion('type', [
  declareKind('enabled', { budget_tokens: z.int().check(z.gte(1024)), ...shown }),
  declareKind('adaptive', shown),
  declareKind('disabled', {}),
  declareKind('between_tools', {}),
]);

const single = { disable_parallel_tool_use: flag };
const toolChoice = z.discriminatedUnion('type', [
  declareKind('auto', single),
  declareKind('any', single),
  declareKind('tool', { name: z.string(), ...single }),
  declareKind('none', {}),
]);

const counted = z.optional(z.looseObject({ type: z.string(), value: z.int() }));
/** Edits that shorten a long conversation. */
const contextEdit = z.discriminatedUnion('type', [
  declareKind('clear_thinking_20251015', { keep: z.optional(z.union([z.literal('all'), counted])) }),
  declareKind('clear_tool_uses_20250919', {
    trigger: counted,
    keep: counted,
    clear_at_least: counted,
    exclude_tools: allowMissing(z.array(z.string())),
    clear_tool_inputs: allowMissing(z.union([z.boolean(), z.array(z.string())])),
  }),
  declareKind('compact_20260112', { trigger: counted, instructions: optionalText }),
]);

const fields = {
  model: z.string(),
  max_tokens: z.int().check(z.gte(1)),
  messages: z.array(
    z.strictObject({
      role: z.enum(['user', 'assistant', 'system']),
      content: z.union([z.string(), z.array(block)]),
    }),
  ),
  system: z.optional(z.union([z.string(), z.array(textBlock)])),
  tools: z.optional(z.array(tool)),
  tool_choice: z.optional(toolChoice),
  thinking: z.optional(thinking),
  output_config: z.optional(
    z.strictObject({
      effort: allowMissing(z.enum(['low', 'medium', 'high', 'xhigh', 'max'])),
      format: allowMissing(declareKind('json_schema', { schema: anything })),
    }),
  ),
  stop_sequences: z.optional(z.array(z.string())),
  stream: flag,
  metadata: z.optional(z.strictObject({ user_id: optionalText })),
  context_management: allowMissing(z.strictObject({ edits: z.optional(z.array(contextEdit)) })),
  service_tier: z.optional(z.enum(['auto', 'standard_only'])),
  container: optionalText,
  inference_geo: optionalText,
  speed: allowMissing(z.enum(['standard', 'fast'])),
  thread: allowMissing(
    z.discriminatedUnion('type', [
      declareKind('create', {}),
      declareKind('continue', { previous_message_id: z.string() }),
    ]),
  ),
  ...cached,
};

const sampling = {
  temperature: z.optional(z.number().check(z.gte(0), z.lte(1))),
  top_p: z.optional(z.number().check(z.gte(0), z.lte(1))),
  top_k: z.optional(z.int().check(z.gte(0))),
};

/** 2023-06-01. */
const olderBody = z.strictObject({ ...fields, ...sampling });
/** 2026-10-21: sampling parameters are unknown fields. */
const newerBody = z.strictObject(fields);

export type MessagesBody = z.infer<typeof olderBody>;
export type Block = z.infer<typeof block>;

export type ReadBody = typeof readBody;

/** Returns the body, or the error in Anthropic's words: the path, then the problem. */
export function readBody(value: unknown, isNewer: boolean): { body: MessagesBody } | { problem: string } {
  const { data, error } = (isNewer ? newerBody : olderBody).safeParse(value);
  return data ? { body: data } : { problem: sentenceOf(error.issues[0] as z.core.$ZodIssue) };
}

function sentenceOf(issue: z.core.$ZodIssue, base: PropertyKey[] = []): string {
  const path = [...base, ...issue.path];
  const formatPath = (more: PropertyKey[] = []): string => [...path, ...more].map(String).join('.');
  if (issue.code === 'unrecognized_keys')
    return `${formatPath([issue.keys[0] ?? ''])}: Extra inputs are not permitted`;
  if (issue.code === 'invalid_union') {
    // The variant that matched deepest is most likely the intended one.
    const [deepest] = issue.errors.flat().toSorted((a, b) => b.path.length - a.path.length);
    return deepest
      ? sentenceOf(deepest, path)
      : `${formatPath()}: Input tag does not match any of the expected tags`;
  }
  if (issue.code === 'invalid_type' && issue.input === undefined) return `${formatPath()}: Field required`;
  return `${formatPath()}: ${issue.message}`;
}
