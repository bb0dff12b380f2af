/** Builds the body of a Messages request for one channel. */
import type { CanonicalCall } from '../../../wire/canonical-call.ts';
import type { ChatRequest } from '../../../wire/chat-request.ts';
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import { CannotCarry, type RequestSettings, type SentBody } from '../../dialect.ts';
import { withBreakpoints } from './cache-policy.ts';
import { conversation, type Turn } from './conversation.ts';
import { modelRules, type ModelRules } from './model-rules.ts';
import { budgetLeast, samplingFields, thinkingFields } from './thinking.ts';
import { toolFields } from './tools.ts';

/**
 * Fields that may be left out and have no form here. `user` and `safety_identifier` have one, `metadata.user_id`, but
 * it must not hold what identifies a person, and nobody knows what a client wrote. `prompt_cache_key` has done its work
 * here when breakpoints are set.
 */
const droppedFields = [
  'user',
  'safety_identifier',
  'metadata',
  'prompt_cache_key',
  'seed',
  'logprobs',
  'top_logprobs',
  'verbosity',
] as const;

/** OpenAI's service tiers that mean one of the vendor's. */
const serviceTiers = new Map([
  ['auto', 'auto'],
  ['default', 'standard_only'],
]);

/** Throws CannotCarry for a field that must not be left out and has no form here. */
export function messagesBody({ request, unknown }: CanonicalCall, settings: RequestSettings): SentBody {
  const rules = modelRules(settings.model);
  const { system, turns } = conversation(request.messages, settings);
  const outputTokensMax = limitOf(request, settings, rules);
  const isLoopWithoutThinking = lacksThinking(turns);
  const thinking = thinkingFields(request, { rules, settings, outputTokensMax, isLoopWithoutThinking });
  const forcesCalls = rules.forcesCalls && !thinking.isOn;
  const tools = toolFields(request, { allow: settings.allow, forcesCalls });
  const sampling = samplingFields(request, {
    isThinking: thinking.isOn,
    rules,
    apiVersion: settings.apiVersion ?? '',
  });
  const hasCacheKey = typeof request.prompt_cache_key === 'string' && request.prompt_cache_key !== '';
  const prompt = withBreakpoints({ tools: tools.tools, system, turns }, { ...rules, hasCacheKey });
  const tier = serviceTiers.get(request.service_tier ?? '');
  const outputConfig = { ...(thinking.effort && { effort: thinking.effort }), ...formatOf(request) };
  const stop = stopSequences(request);

  // Vendors cache from the front: tools, then system, then messages. Written in that order, the body of the next turn
  // begins with this one's.
  const body: JsonRecord = {
    model: settings.model,
    ...(prompt.tools.length > 0 && { tools: prompt.tools }),
    ...(prompt.system.length > 0 && { system: prompt.system }),
    messages: prompt.turns,
    max_tokens: outputTokensMax,
    ...(tools.choice && { tool_choice: tools.choice }),
    ...(thinking.thinking && { thinking: thinking.thinking }),
    ...(Object.keys(outputConfig).length > 0 && { output_config: outputConfig }),
    ...sampling.fields,
    ...(stop.length > 0 && { stop_sequences: stop }),
    ...(tier && { service_tier: tier }),
  };
  Object.assign(body, settings.set);
  for (const field of settings.drop) delete body[field];
  delete body['stream'];
  if (settings.stream) body['stream'] = true;
  const dropped = [
    ...tools.dropped,
    ...thinking.dropped,
    ...sampling.dropped,
    ...droppedFields.filter((field) => isSet(request[field])),
    ...(isSet(request.service_tier) && tier === undefined ? ['service_tier'] : []),
    ...Object.keys(unknown),
    ...(settings.without.has('state') && settings.states.size > 0 ? ['reasoning'] : []),
  ];
  keepRoomToAnswer(body);
  const { max_tokens: sentLimit } = body;
  const repeated = limitOf(request, { ...settings, without: new Set(['limit']) }, rules);
  return {
    body,
    dropped,
    effort: thinking.changedEffort,
    toolChoice: tools.changedChoice,
    outputTokensMax: typeof sentLimit === 'number' ? sentLimit : undefined,
    limitIsLeast: settings.set['max_tokens'] !== undefined || repeated >= outputTokensMax,
    wrapped: tools.wrapped,
  };
}

/** A budget that the row sets must be below the limit, which may be lower than the row expects. */
function keepRoomToAnswer(body: JsonRecord): void {
  const { max_tokens: limit, thinking } = body;
  const budget = asRecord(thinking)['budget_tokens'];
  if (typeof limit !== 'number' || typeof budget !== 'number' || budget < limit) return;
  const lowered = limit - budgetLeast;
  if (lowered < budgetLeast) delete body['thinking'];
  else body['thinking'] = { ...asRecord(thinking), budget_tokens: lowered };
}

/** `false` asks for nothing, as null does. */
const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== false;

/** The smallest maximum of the family's models, which other servers of the dialect take as well. */
const leastMaximum = 4_096;

/**
 * The limit, which the vendor requires. Never more than the balance covers, the channel allows and the model's
 * documented maximum. `outputTokensLimit` is also what a client of another endpoint asked for. After a refusal, also
 * never more than the smallest documented maximum where the model has none.
 */
function limitOf(request: ChatRequest, settings: RequestSettings, { outputTokensMax }: ModelRules): number {
  const { outputTokensDefault, outputTokensLimit, maxOutputTokens, without } = settings;
  const asked = request.max_completion_tokens ?? request.max_tokens ?? outputTokensLimit;
  const documented = without.has('limit') ? (outputTokensMax ?? leastMaximum) : outputTokensMax;
  return Math.min(
    asked ?? outputTokensDefault,
    outputTokensLimit ?? Infinity,
    maxOutputTokens ?? Infinity,
    documented ?? Infinity,
  );
}

/** Whether the call continues a loop of calls whose last turn does not begin with thinking. */
function lacksThinking(turns: readonly Turn[]): boolean {
  const answered = turns.at(-1)?.content.some(({ type }) => type === 'tool_result') ?? false;
  const first = turns.at(-2)?.content[0]?.['type'];
  return answered && first !== 'thinking' && first !== 'redacted_thinking';
}

/** The form of the answer, for `output_config`. Throws CannotCarry for JSON without a schema, and for more answers than one. */
function formatOf({ response_format: format, n }: ChatRequest): JsonRecord {
  if ((n ?? 1) > 1) throw new CannotCarry('n', 'This model gives one answer at a time.');
  if (!format || format.type === 'text') return {};
  const { schema } = asRecord(format['json_schema']);
  if (format.type === 'json_schema' && isRecord(schema))
    return { format: { type: 'json_schema', schema: closed(schema) } };
  throw new CannotCarry('response_format', 'This model gives JSON only for a schema (`json_schema`).');
}

/** Keywords of JSON Schema that hold schemas: one or a list of them, and those that hold them by name. */
const schemaKeywords = new Set(['items', 'prefixItems', 'anyOf', 'oneOf']);
const namedKeywords = new Set(['properties', '$defs', 'definitions']);

/**
 * The vendor wants `additionalProperties: false` on every object. What a closed object allows an open one allows too,
 * so it is added where the client did not say. Not to maps, which name no properties, nor inside `allOf`, whose parts
 * would exclude each other.
 */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (!isRecord(schema)) return schema;
  const inner = Object.entries(schema).map(([keyword, value]): [string, unknown] => {
    if (schemaKeywords.has(keyword)) return [keyword, closed(value)];
    if (!namedKeywords.has(keyword) || !isRecord(value)) return [keyword, value];
    return [keyword, Object.fromEntries(Object.entries(value).map(([name, each]) => [name, closed(each)]))];
  });
  const isOpen = isRecord(schema['properties']) && schema['additionalProperties'] === undefined;
  return Object.fromEntries(isOpen ? [...inner, ['additionalProperties', false]] : inner);
}

/** Throws CannotCarry for a sequence of white space alone, which the vendor refuses. */
function stopSequences({ stop }: ChatRequest): string[] {
  const sequences = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((each) => each !== '');
  if (sequences.some((each) => each.trim() === '')) {
    throw new CannotCarry('stop', 'This model does not stop at white space alone.');
  }
  return sequences;
}
