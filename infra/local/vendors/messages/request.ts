/**
 * A request of Messages: its body as Anthropic's reference and SDK (`MessageCreateParamsBase`) have it, where any other field
 * is refused, what each model can, and what the scripted model sees of it. What depends on model or version is in the rules.
 */
import * as z from 'zod/mini';
import { asksSummary, type JsonSchema, type Transcript } from '../script.ts';
import { readContentText } from '../vendor.ts';

/** A Messages request of the right form for a model that exists. */
export interface MessagesCall {
  headers: Record<string, string>;
  body: MessagesBody;
  can: ClaudeModel;
  isNewer: boolean;
  /** Owner of the cache and the thinking. */
  account: string;
}

export const blocksOf = (content: string | Block[]): Block[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

/** Each block with its message, in order. */
export const listBlocks = ({ body: { messages } }: MessagesCall) =>
  messages.flatMap(({ role, content }, message) =>
    blocksOf(content).map((block, index) => ({ role, block, message, index })),
  );

export function readMessagesTranscript({ body }: MessagesCall): Transcript {
  const { messages, tools = [], tool_choice: choice } = body;
  const isSaid = ({ role, content }: MessagesBody['messages'][number]): boolean =>
    role === 'user' && !blocksOf(content).some(({ type }) => type === 'tool_result');
  const lastUser = messages.findLastIndex(isSaid);
  const after = messages.slice(lastUser + 1).map(({ content }) => blocksOf(content));
  const names = new Map(
    after.flat().flatMap((block) => (block.type === 'tool_use' ? [[block.id, block.name] as const] : [])),
  );
  // Texts of users in a row are blocks of one message.
  const text = blocksOf(messages[lastUser]?.content ?? '').findLast(({ type }) => type === 'text');
  const last = blocksOf(messages.at(-1)?.content ?? '').at(-1);
  const said = last?.type === 'text' && asksSummary(last.text) ? last : text;
  return {
    said: readContentText(said && [said]),
    turns: after.filter((blocks) => blocks.some(({ type }) => type === 'tool_use')).length,
    results: after
      .flat()
      .flatMap((block) =>
        block.type === 'tool_result'
          ? [{ name: names.get(block.tool_use_id) ?? '', text: readContentText(block.content) }]
          : [],
      ),
    // The model sees deferred tools only once it has searched for them.
    tools: [...tools, ...listAddedTools(body)]
      .toSorted(compareDeferred)
      .map(({ name, input_schema: parameters }) => ({
        name,
        parameters: parameters as JsonSchema,
      })),
    choice: choiceOf(choice),
    stops: body.stop_sequences ?? [],
    ...(choice &&
      'disable_parallel_tool_use' in choice &&
      choice.disable_parallel_tool_use && { single: true }),
    ...(body.output_config?.format && { schema: body.output_config.format.schema }),
    whole: () => JSON.stringify(messages),
  };
}

const compareDeferred = (a: { defer_loading?: unknown }, b: { defer_loading?: unknown }): number =>
  Number(a.defer_loading === true) - Number(b.defer_loading === true);

/** Tools that a turn of the system adds [docs/build-with-claude/mid-conversation-system-messages]. */
const listAddedTools = ({ messages }: MessagesBody) =>
  messages.flatMap(({ content }) =>
    blocksOf(content).flatMap((each) => (each.type === 'tool_addition' ? [each.tool.definition] : [])),
  );

function choiceOf(choice: MessagesBody['tool_choice']): Transcript['choice'] {
  if (choice?.type === 'tool') return { name: choice.name };
  if (choice?.type === 'any') return 'required';
  return choice?.type === 'none' ? 'none' : 'auto';
}

/** How the model thinks in this call: not at all, or shown or with empty text. */
export function thinkingOf({ body: { thinking }, can }: MessagesCall): 'off' | 'summarized' | 'omitted' {
  const isOn = thinking ? thinking.type === 'enabled' || thinking.type === 'adaptive' : can.thinksAlways;
  if (!isOn) return 'off';
  return (thinking && 'display' in thinking && thinking.display) || can.display;
}

/** Abilities of models, from Anthropic's pages about models, migration and caching [November 2026]. */
export interface ClaudeModel {
  /** `temperature`, `top_p`, `top_k`. */
  sampling: boolean;
  /** `tool_choice` any and tool. */
  forcedChoice: boolean;
  thinking: ('enabled' | 'disabled' | 'adaptive')[];
  /** Thinks without being asked. */
  thinksAlways: boolean;
  /** The default when the request does not say whether thinking is shown. */
  display: 'summarized' | 'omitted';
  /** Thinking is valid only in the conversation that it was made in. */
  boundThinking: boolean;
  /** An assistant message may come last. */
  prefill: boolean;
  /** Texts of the system may stand among the messages. */
  systemTurns: boolean;
  effort: boolean;
  /** Shorter prompts are not cached. */
  cachedFrom: number;
  outputMax: number;
}

const newest: ClaudeModel = {
  sampling: false,
  forcedChoice: false,
  thinking: ['adaptive'],
  thinksAlways: true,
  display: 'omitted',
  boundThinking: true,
  prefill: false,
  systemTurns: true,
  effort: true,
  cachedFrom: 512,
  outputMax: 128_000,
};

const older: ClaudeModel = {
  sampling: true,
  forcedChoice: true,
  thinking: ['enabled', 'disabled'],
  thinksAlways: false,
  display: 'summarized',
  boundThinking: false,
  prefill: true,
  systemTurns: false,
  effort: false,
  cachedFrom: 1024,
  outputMax: 64_000,
};

export const claudeModels: Record<string, ClaudeModel> = {
  'claude-opus-5-5': newest,
  'claude-fable-5-1': newest,
  // Thinks unless told not to, and then a call can be forced [models/haiku-5-5/migration-guide, 2026-10-07].
  'claude-haiku-5-5': { ...newest, thinking: ['adaptive', 'disabled'], forcedChoice: true, cachedFrom: 1024 },
  'claude-sonnet-4-6': { ...older, thinking: [...older.thinking, 'adaptive'], effort: true, prefill: false },
  'claude-haiku-4-5': { ...older, cachedFrom: 4096 },
  // Made up, with rules that no family has.
  'claude-lyra-7': { ...older, thinking: ['enabled'], prefill: false, outputMax: 48_000 },
};

const allowMissing = <Schema extends z.ZodMiniType>(schema: Schema) => z.optional(z.nullable(schema));
/** A map with these members and no others, told from its like by its type. */
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
  // An answer's block comes back with all that it had.
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
  /** Part of a beta: what to do with a block of another conversation. */
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

/** The body, or what is wrong in Anthropic's words: the place, then the complaint. */
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
    // The variant that came furthest knows best what is wrong.
    const [deepest] = issue.errors.flat().toSorted((a, b) => b.path.length - a.path.length);
    return deepest
      ? sentenceOf(deepest, path)
      : `${formatPath()}: Input tag does not match any of the expected tags`;
  }
  if (issue.code === 'invalid_type' && issue.input === undefined) return `${formatPath()}: Field required`;
  return `${formatPath()}: ${issue.message}`;
}
