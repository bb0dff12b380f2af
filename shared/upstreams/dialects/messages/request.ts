/** Builds the body of a Messages request, for Anthropic, Claude on Bedrock and compatible endpoints of other vendors. */
import { endUserOf, type CanonicalCall, type ChatRequest } from '../../../wire/canonical-call.ts';
import { tierFactor } from '../../../wire/service-tier.ts';
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json.ts';
import {
  CannotCarry,
  type RequestSettings,
  type SentBody,
  type DialectCode,
  applyRowFields,
} from '../../dialect.ts';
import { splitStopSequences } from '../../request-fields.ts';
import { addBreakpoints } from './cache-policy.ts';
import { buildConversation } from './conversation.ts';
import { convertSchema } from './grammar-schema.ts';
import { lacksThinking, budgetMin, filterSampling, decideThinking } from './thinking.ts';
import { asksForCall, placeTools, convertTools } from './tools.ts';
import { MessagesReader } from './events.ts';
import { tenantFields } from './tenant-fields.ts';
import {
  dropThinkingEdits,
  buildNativeBody,
  optionalFields,
  filterBetas,
  shortenLifetimes,
} from './native.ts';

/**
 * Fields without a form here that may be dropped, except that one may name the end user. `prompt_cache_key` has done
 * its work when breakpoints are set.
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

/**
 * Service tiers by OpenAI's names. `auto`: the priority tier as far as the organisation has bought it, or else the
 * standard one.
 */
const serviceTiers = new Map<string, JsonRecord>([
  ['auto', { service_tier: 'auto' }],
  ['priority', { service_tier: 'auto' }],
  ['default', { service_tier: 'standard_only' }],
  ['fast', { speed: 'fast' }],
]);

/** A row that allows `service_tier` does not allow `speed`, which is a beta [platform.claude.com, "Fast mode", 2026]. */
function convertTier({ service_tier: tier }: ChatRequest, settings: RequestSettings): JsonRecord | undefined {
  const { allow, serviceTiers: priced = {} } = settings;
  // Only fast mode has a price here, so `priority` means fast mode, not capacity.
  const isOther = tier === 'priority' && Object.hasOwn(priced, 'fast') && !Object.hasOwn(priced, tier);
  const meant = isOther ? 'fast' : (tier ?? '');
  if (meant === 'fast' && tierFactor(priced, meant) === undefined && !allow.includes('speed'))
    return undefined;
  return serviceTiers.get(meant);
}

/** The vendor refuses a stop sequence of white space alone. */
const isMoreThanSpace = (sequence: string): boolean => sequence.trim() !== '';

/** Throws CannotCarry for a field that must not be dropped and has no form here. */
export function buildMessagesBody(call: CanonicalCall, settings: RequestSettings): SentBody {
  const { request, unknown } = call;
  const { quirks } = settings;
  const outputTokensMax = limitOf(request, settings);
  const native = buildNativeBody(call, { settings, outputTokensMax });
  if (native) {
    const { thinking } = native.body;
    keepRoomToAnswer(native.body);
    const isLost = thinking !== undefined && native.body['thinking'] === undefined;
    const dropped = [...native.dropped, ...(isLost ? ['thinking'] : [])];
    if (dropped.includes('thinking')) dropThinkingEdits(native.body);
    return {
      ...native,
      dropped,
      ...describeLimit(native.body, call, settings),
      isNative: true,
      features: [...(call.native?.headers.betas ?? []), ...optionalFields],
      wrappedTools: new Set(),
    };
  }
  const isInline = quirks.bindsThinking && !settings.refusedFeatures?.includes(inlineTools);
  const items = isInline ? call.items : undefined;
  const { system, turns } = buildConversation(request.messages, settings, items?.after);
  const ofEveryTurn = quirks.wantsBack === 'thinking';
  const spokenTurns = turns.filter(({ role }) => role !== 'system');
  const isLoopWithoutThinking = lacksThinking(spokenTurns, { ofEveryTurn });
  // A forced call excludes thinking. A client that asks only for the forced call means that.
  const isFirst = quirks.supportsForcedCalls && quirks.thinkingOff === 'disabled' && asksForCall(request);
  const asked = isFirst ? { ...request, reasoning_effort: request.reasoning_effort ?? 'none' } : request;
  const thinking = decideThinking(asked, { settings, outputTokensMax, isLoopWithoutThinking });
  const forcesCalls = quirks.supportsForcedCalls && !thinking.isOn;
  // Another choice would make the vendor read the whole conversation anew instead of from its cache ["Tool use with
  // prompt caching"].
  const choiceRequest = call.compacts ? { ...request, tool_choice: 'auto' } : request;
  const tools = convertTools(choiceRequest, { allow: settings.allow, forcesCalls });
  const sampling = filterSampling(request, {
    isThinking: thinking.isOn,
    quirks,
    apiVersion: settings.apiVersion ?? '',
  });
  const hasCacheKey = typeof request.prompt_cache_key === 'string' && request.prompt_cache_key !== '';
  const placement = placeTools(tools, turns, items);
  const prompt = addBreakpoints({ ...placement, system }, { ...quirks, hasCacheKey });
  const tier = convertTier(request, settings);
  const { format, moved } = formatOf(request);
  const outputConfig = { ...(thinking.effort && { effort: thinking.effort }), ...(format && { format }) };
  const stops = splitStopSequences(call, settings, { sentMax: Infinity, takes: isMoreThanSpace });
  // Names of end users are pseudonyms here.
  const endUser = endUserOf(request);

  // Vendors cache from the front: tools, then system, then messages. In this order the body of the next turn begins
  // with this one.
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
    ...(stops.sent.length > 0 && { stop_sequences: stops.sent }),
    ...tier,
    ...(endUser && { metadata: { user_id: endUser } }),
  };
  // The row's own thinking would be refused again.
  const set = thinking.isLost ? { ...settings.set, thinking: thinking.thinking } : settings.set;
  applyRowFields(body, { ...settings, set });
  const dropped = [
    ...tools.dropped,
    ...thinking.dropped,
    ...sampling.dropped,
    ...moved,
    ...droppedFields.filter((field) => isSet(request[field]) && !isCarried(request[field], endUser)),
    ...(isSet(request.service_tier) && tier === undefined ? ['service_tier'] : []),
    ...Object.keys(unknown),
    ...(settings.omissions.has('state') && settings.states.size > 0 ? ['reasoning'] : []),
  ];
  keepRoomToAnswer(body);
  if (settings.unpricedHour && shortenLifetimes(body)) dropped.push('cache_control.ttl');
  return {
    body,
    dropped,
    effort: thinking.changedEffort,
    toolChoice: tools.changedChoice,
    ...describeLimit(body, call, settings),
    stop: stops.watched,
    wrappedTools: tools.wrapped,
    ...(placement.isAny && { features: [inlineTools] }),
  };
}

function describeLimit(
  { max_tokens: sent }: JsonRecord,
  { request }: CanonicalCall,
  settings: RequestSettings,
): Pick<SentBody, 'outputTokensMax' | 'isLimitLowest'> {
  const repeated = limitOf(request, { ...settings, omissions: new Set(['limit']) });
  return {
    outputTokensMax: typeof sent === 'number' ? sent : undefined,
    isLimitLowest: settings.set['max_tokens'] !== undefined || repeated >= limitOf(request, settings),
  };
}

/** The row's budget must be below the limit, which may be lower than the row expects. */
function keepRoomToAnswer(body: JsonRecord): void {
  const { max_tokens: limit, thinking } = body;
  const budget = asRecord(thinking)['budget_tokens'];
  if (typeof limit !== 'number' || typeof budget !== 'number' || budget < limit) return;
  const lowered = limit - budgetMin;
  if (lowered < budgetMin) delete body['thinking'];
  else body['thinking'] = { ...asRecord(thinking), budget_tokens: lowered };
}

/** The field contains only the name of the end user. */
const isCarried = (value: unknown, endUser: string | undefined): boolean =>
  endUser !== undefined &&
  (value === endUser || (isRecord(value) && value['user_id'] === endUser && Object.keys(value).length === 1));

/** `false` asks for nothing, like null. */
const isSet = (value: unknown): boolean => value !== undefined && value !== null && value !== false;

/** The smallest maximum of the family's models, which other servers of the dialect also accept. */
const smallestMaximum = 4_096;

/**
 * The limit, which the vendor requires. Never above what the balance covers, the channel allows and the model's
 * documented maximum. `outputTokensLimit` may also come from a client of another endpoint. After a refusal, an
 * undocumented maximum is taken as the smallest documented one.
 */
function limitOf(request: ChatRequest, settings: RequestSettings): number {
  const { outputTokensDefault, outputTokensLimit, maxOutputTokens, omissions } = settings;
  const { outputTokensMax } = settings.quirks;
  const asked = request.max_completion_tokens ?? request.max_tokens ?? outputTokensLimit;
  const documented = omissions.has('limit') ? (outputTokensMax ?? smallestMaximum) : outputTokensMax;
  return Math.min(
    asked ?? outputTokensDefault,
    outputTokensLimit ?? Infinity,
    maxOutputTokens ?? Infinity,
    documented ?? Infinity,
  );
}

/** Throws CannotCarry for JSON without a schema, for a schema that cannot be enforced, and for more than one answer. */
function formatOf({ response_format: format, n }: ChatRequest): { format?: JsonRecord; moved: string[] } {
  if ((n ?? 1) > 1) throw new CannotCarry('n', 'This model returns only one answer per request.');
  if (!format || format.type === 'text') return { moved: [] };
  const { schema, description } = asRecord(format['json_schema']);
  if (format.type !== 'json_schema' || !isRecord(schema))
    throw new CannotCarry('response_format', 'This model returns JSON only with a schema (`json_schema`).');
  const grammar = convertSchema({ ...(typeof description === 'string' && { description }), ...schema });
  if (!grammar) {
    const message =
      'This model does not support this schema: it is recursive, or allows names or values of any kind.';
    throw new CannotCarry('response_format', message);
  }
  const moved = grammar.moved.map((keyword) => `response_format.${keyword}`);
  return { format: { type: 'json_schema', schema: grammar.schema }, moved };
}

/** The version that all these endpoints know. A row may name a later one. */
const defaultVersion = '2023-06-01';
/** The vendor refuses `thinking.block_binding` without it. Endpoints that check betas know it if the model binds. */
const bindingControls = 'thinking-binding-controls-2026-08-01';
/** For tools in the middle of a conversation. If it is refused, they move to the front. */
const inlineTools = 'inline-tools-2026-09-15';

/** Fields about the answer, which are refused in a request that only counts tokens. */
const answerFields = new Set(
  'max_tokens stream stop_sequences temperature top_p top_k metadata service_tier container inference_geo fallbacks'.split(
    ' ',
  ),
);

export const messages: DialectCode = {
  body: buildMessagesBody,
  tenantFields,
  headers({ apiVersion, quirks, refusedFeatures = [] }, call, sent) {
    const asked = sent?.isNative ? call?.native?.headers : undefined;
    const binds = asked ? 'block_binding' in asRecord(sent?.body['thinking']) : quirks.bindsThinking;
    const own = binds && !asked?.betas?.includes(bindingControls) ? [bindingControls] : [];
    if (!asked && sent?.body['speed'] === 'fast') own.push('fast-mode-2026-02-01');
    const added = asked ? [] : (sent?.features ?? []);
    const betas = [
      ...own,
      ...added,
      ...filterBetas(asked?.betas ?? [], sent?.dropped ?? [], refusedFeatures),
    ];
    return {
      'anthropic-version': apiVersion ?? asked?.version ?? defaultVersion,
      ...(betas.length > 0 && { 'anthropic-beta': betas.join(',') }),
    };
  },
  counting: {
    path: '/messages/count_tokens',
    body: (body) => Object.fromEntries(Object.entries(body).filter(([field]) => !answerFields.has(field))),
    tokens: ({ input_tokens: tokens }) => tokens,
  },
  Reader: MessagesReader,
};
