/**
 * Anthropic's rejections of parameters, caching, thinking and JSON Schemas: the page "Structured outputs", JSON
 * Schema / limitations, November 2026, in its words where threads show them. `docs` is
 * platform.claude.com/docs/en.
 */
import { isRecord } from '../../../../shared/wire/json.ts';
import { type Rules } from '../vendor.ts';
import { listBlocks, thinkingOf, type MessagesCall } from './request.ts';
import { listBreakpoints, listReturnedThinking } from './thinking.ts';

const extendedThinking = 'https://platform.claude.com/docs/en/build-with-claude/extended-thinking';

const samplingFields = ['temperature', 'top_p', 'top_k'] as const;

const findInFormat = (
  { body: { output_config: config } }: MessagesCall,
  find: (schema: unknown) => string | undefined,
): string | undefined => {
  const problem = find(config?.format?.schema);
  return problem === undefined ? undefined : `output_config.format.schema: ${problem}`;
};

const formatThinkingPlace = ({ message, index }: { message: number; index: number }): string =>
  `messages.${message}.content.${index}`;

const listSampling = ({ body }: MessagesCall) => samplingFields.filter((field) => body[field] !== undefined);
const isForced = ({ body: { tool_choice: choice } }: MessagesCall): boolean =>
  choice?.type === 'any' || choice?.type === 'tool';

export const parameterRules: Rules<MessagesCall> = {
  // The limit max_tokens is at most the model's maximum [docs/about-claude/models/overview].
  'output-max': ({ body: { max_tokens: limit, model }, can }) =>
    limit > can.outputMax &&
    `max_tokens: ${limit} > ${can.outputMax}, which is the maximum allowed number of output tokens for ${model}`,
  // Newer models take no sampling parameters [The-PR-Agent/pr-agent/issues/2456, 2026-06-18].
  'sampling-refused'(call) {
    const [field] = listSampling(call);
    return !call.can.sampling && field && `\`${field}\` is deprecated for this model.`;
  },
  // Only one of temperature and top_p is accepted [docs/about-claude/models/migration-guide].
  'one-of-sampling': ({ body }) =>
    body.temperature !== undefined &&
    body.top_p !== undefined &&
    '`temperature` and `top_p` cannot both be specified for this model. Please use only one.',
  // With thinking the temperature is 1, top_k is not set and top_p is at least 0.95
  // [docs/build-with-claude/extended-thinking].
  'thinking-sampling'(call) {
    const { temperature = 1, top_p: topP = 1, top_k: topK } = call.body;
    if (thinkingOf(call) === 'off' || (temperature === 1 && topP >= 0.95 && topK === undefined))
      return undefined;
    const said =
      temperature === 1
        ? '`top_p` must be greater than or equal to 0.95 or unset, and `top_k` unset,'
        : '`temperature` may only be set to 1';
    return `${said} when thinking is enabled.`;
  },
  // Each model knows only some kinds of thinking; the newest only adaptive, never disabled
  // [docs/models/opus-5-5/migration-guide, 2026-09-22].
  'thinking-type'({ body: { thinking }, can }) {
    if (!thinking || can.thinking.some((type) => type === thinking.type)) return undefined;
    return `"thinking.type.${thinking.type}" is not supported for this model.`;
  },
  // The budget of thinking is below max_tokens [docs/build-with-claude/extended-thinking].
  'thinking-budget': ({ body: { thinking, max_tokens: limit } }) =>
    thinking?.type === 'enabled' &&
    thinking.budget_tokens >= limit &&
    `\`max_tokens\` must be greater than \`thinking.budget_tokens\`. Please consult ${extendedThinking}`,
  // Without thinking there is none to clear [router-for-me/CLIProxyAPI/issues/4957, 2026-08-14].
  'clear-thinking': (call) =>
    thinkingOf(call) === 'off' &&
    (call.body.context_management?.edits ?? []).some(({ type }) => type === 'clear_thinking_20251015') &&
    '`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive',
  // Only newer models have an effort [docs/build-with-claude/effort].
  effort: ({ body, can }) =>
    !can.effort &&
    typeof body.output_config?.effort === 'string' &&
    'This model does not support the effort parameter.',
  // The objects of an output format allow no other properties than they name [docs/build-with-claude/structured-outputs].
  'format-schema': (call) => findInFormat(call, openObject),
  // An output format has no keywords that bound numbers, texts and lists, no oneOf and no values of any kind
  // [agentjido/req_llm/issues/302, 2025-12-28].
  'format-keywords': (call) => findInFormat(call, findRefusedKeyword),
  // An output format is not recursive [docs/build-with-claude/structured-outputs#json-schema-limitations].
  'format-recursion': (call) => findInFormat(call, findRecursion),
  // The schema of a strict tool has the limits of an output format, and at most 20 tools are strict
  // [docs/agents-and-tools/tool-use/strict-tool-use].
  'strict-tools'({ body: { tools = [] } }) {
    const strict = tools.filter((tool) => tool.strict);
    if (strict.length > 20) return 'Too many strict tools: at most 20 are supported per request.';
    const [problem] = strict.flatMap(({ input_schema: schema }) =>
      [openObject, findRefusedKeyword, findRecursion].flatMap((find) => find(schema) ?? []),
    );
    return problem !== undefined && `tools.custom.input_schema: ${problem}`;
  },
  // An inline image is a JPEG, PNG, GIF or WebP by its registered type [anthropics/claude-code/issues/400, 2025-03-08].
  'image-type'(call) {
    const found = listBlocks(call).find(
      ({ block }) =>
        block.type === 'image' &&
        block.source.type === 'base64' &&
        !/^image\/(jpeg|png|gif|webp)$/.test(block.source.media_type),
    );
    return (
      found &&
      `${formatThinkingPlace(found)}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'`
    );
  },
  // The newest models refuse a forced tool choice [can1357/oh-my-pi/issues/12939, 2026-09-23].
  'forced-choice': (call) =>
    !call.can.forcedChoice &&
    isForced(call) &&
    'tool_choice: type "tool" and "any" are not supported for this model.',
  // A forced tool choice and thinking exclude each other
  // [docs/build-with-claude/extended-thinking#extended-thinking-with-tool-use].
  'forced-choice-thinking': (call) =>
    thinkingOf(call) !== 'off' &&
    isForced(call) &&
    'Thinking may not be enabled when tool_choice forces tool use.',
  // At most four blocks carry cache_control [envoyproxy/ai-gateway/pull/1712, 2025-12-30].
  breakpoints(call) {
    const count = listBreakpoints(call).length;
    return count > 4 && `A maximum of 4 blocks with cache_control may be provided. Found ${count}.`;
  },
  // Breakpoints of an hour stand before those of five minutes
  // [docs/build-with-claude/prompt-caching#mixing-different-ttls].
  'breakpoint-order'(call) {
    const ttls = listBreakpoints(call).map(({ ttl }) => ttl);
    return (
      ttls.lastIndexOf('1h') > ttls.indexOf('5m') &&
      ttls.includes('5m') &&
      "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
    );
  },
};

const drops = ({ body: { thinking } }: MessagesCall): boolean =>
  thinking !== undefined &&
  'block_binding' in thinking &&
  thinking.block_binding?.prefix_mismatch_behavior === 'drop_block';

export const thinkingRules: Rules<MessagesCall> = {
  // The signature of a thinking block is one that the vendor made
  // [docs/build-with-claude/extended-thinking#preserving-thinking-blocks].
  'thinking-signature'(call) {
    const found = listReturnedThinking(call).find(({ problem }) => problem === 'forged');
    return found && `${formatThinkingPlace(found)}: Invalid \`signature\` in \`thinking\` block`;
  },
  // Thinking blocks come back as they were [anthropics/claude-code/issues/63155, 2026-05-28].
  'thinking-unchanged'(call) {
    const found = listReturnedThinking(call).find(({ problem }) => problem === 'changed');
    return (
      found &&
      `${formatThinkingPlace(found)}: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.`
    );
  },
  // Thinking is valid only for its model and account, while system, tools and all messages before it are the same
  // [pydantic/pydantic-ai/pull/7989, 2026-09-02; anomalyco/opencode/issues/48637, 2026-09-12].
  'thinking-bound'(call) {
    const found = listReturnedThinking(call).find(
      ({ problem }) => problem === 'bound' || problem === 'foreign',
    );
    return (
      found &&
      call.can.boundThinking &&
      !drops(call) &&
      `${formatThinkingPlace(found)}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block". That setting requires the \`thinking-binding-controls-2026-08-01\` value in the \`anthropic-beta\` header.`
    );
  },
  // With a budget for thinking, the last assistant turn with calls starts with its thinking
  // [docs/build-with-claude/extended-thinking#preserving-thinking-blocks].
  'thinking-first'(call) {
    const { thinking, messages } = call.body;
    const last = messages.findLastIndex(({ role }) => role === 'assistant');
    const blocks = listBlocks(call).filter(({ message }) => message === last);
    const [first] = blocks;
    if (thinking?.type !== 'enabled' || !first || !blocks.some(({ block }) => block.type === 'tool_use'))
      return undefined;
    if (first.block.type === 'thinking' || first.block.type === 'redacted_thinking') return undefined;
    return `${formatThinkingPlace(first)}.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first.block.type}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`.`;
  },
};

type Schema = Record<string, unknown>;

const supported: Record<string, string[]> = {
  object: ['properties', 'required', 'additionalProperties'],
  array: ['items', 'minItems'],
  string: ['format', 'pattern'],
};
const everywhere = [
  'type',
  'title',
  'description',
  'enum',
  'const',
  'anyOf',
  'allOf',
  '$defs',
  'definitions',
];
const formats = new Set('date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '));

/** The schemas inside a schema, it first. */
function* listSchemas(schema: unknown): Generator<Schema> {
  if (!isRecord(schema)) return;
  yield schema;
  for (const list of ['properties', '$defs', 'definitions'])
    if (isRecord(schema[list])) for (const each of Object.values(schema[list])) yield* listSchemas(each);
  for (const list of ['anyOf', 'oneOf', 'allOf'])
    if (Array.isArray(schema[list])) for (const each of schema[list]) yield* listSchemas(each);
  yield* listSchemas(schema['items']);
}

const typesOf = ({ type, properties, items }: Schema): string[] =>
  type === undefined ? (properties ? ['object'] : items ? ['array'] : []) : [type].flat().map(String);

/** An object that says nothing of other properties, or allows them. */
export const openObject = (schema: unknown): string | undefined =>
  [...listSchemas(schema)].some(
    (each) => typesOf(each).includes('object') && each['additionalProperties'] !== false,
  )
    ? "For 'object' type, 'additionalProperties' must be explicitly set to false"
    : undefined;

/** A keyword that the type does not have there. */
export function findRefusedKeyword(schema: unknown): string | undefined {
  for (const each of listSchemas(schema)) {
    if ('$ref' in each) continue;
    const types = typesOf(each);
    const known = new Set([...everywhere, ...types.flatMap((type) => supported[type] ?? [])]);
    const others = Object.keys(each).filter((keyword) => !known.has(keyword));
    if (others.length > 0) return `For '${types[0]}' type, properties ${others.join(', ')} are not supported`;
    const { minItems = 0, format = 'date', pattern = '' } = each;
    if (!(minItems === 0 || minItems === 1))
      return `For 'array' type, 'minItems' values other than 0 or 1 are not supported`;
    if (!formats.has(String(format))) return `For 'string' type, format ${String(format)} is not supported`;
    if (/\(\?[=!<]|\\b/.test(String(pattern))) return `For 'string' type, the pattern is not supported`;
    if (types.length === 0 && !['enum', 'const', 'anyOf', 'allOf'].some((keyword) => keyword in each))
      return 'Schema must have a type';
  }
  return undefined;
}

/** A reference that leads back to its own definition, or out of the definitions. */
export function findRecursion(schema: unknown): string | undefined {
  const resolve = (ref: unknown): unknown => {
    const [, list = '', name = ''] = /^#\/(\$defs|definitions)\/(.+)$/.exec(String(ref)) ?? [];
    const definitions = isRecord(schema) ? schema[list] : undefined;
    return isRecord(definitions) ? definitions[name] : undefined;
  };
  const leadsBack = (from: unknown, path: unknown[]): boolean =>
    [...listSchemas(from)].some(({ $ref: ref }) => {
      if (ref === undefined) return false;
      const target = resolve(ref);
      return target === undefined || path.includes(target) || leadsBack(target, [...path, target]);
    });
  return leadsBack(schema, []) ? 'Recursive schemas and external references are not supported' : undefined;
}
