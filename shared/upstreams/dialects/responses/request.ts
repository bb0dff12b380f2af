/** Builds the body of a Responses request, for OpenAI, Azure and GPT models on Bedrock. */
import type { CanonicalCall, ChatRequest } from '../../../wire/canonical-call.ts';
import { asRecord, listIn, textIn, removeNulls, type JsonRecord } from '../../../wire/json.ts';
import {
  CannotCarry,
  type RequestSettings,
  type SentBody,
  type DialectCode,
  applyRowFields,
} from '../../dialect.ts';
import { chooseEffort, findRefusedSampling, splitStopSequences } from '../../request-fields.ts';
import { parseFieldRules, prefixFields } from '../../restricted-fields.ts';
import { convertMessages } from './input.ts';
import { convertTools } from './tools.ts';
import { ResponsesReader } from './events.ts';
import { submissions } from './submissions.ts';

/** Below this the vendor refuses a limit. */
const outputTokensMin = 16;
const efforts = ['none', 'low', 'medium', 'high', 'xhigh'];
/** Fields with the same name and form here that may be dropped. */
const sameFields = [
  'temperature',
  'top_p',
  'user',
  'metadata',
  'safety_identifier',
  'prompt_cache_key',
  'service_tier',
] as const;
/** Fields of the canonical call without a form here that may be dropped. */
const unsupportedFields = [
  'seed',
  'top_k',
  'presence_penalty',
  'frequency_penalty',
  'repetition_penalty',
] as const;
/** Fields of the cache, which both forms have. */
const cacheFields = new Set(['prompt_cache_options', 'prompt_cache_retention']);

/**
 * The upstream stores no response, so reasoning is requested in encrypted form and sent again with its turn. Unknown
 * fields are sent if the client wrote Responses; fields of the cache always. Throws CannotCarry.
 */
export function buildResponsesBody(call: CanonicalCall, settings: RequestSettings): SentBody {
  const { request } = call;
  const ownForm = call.form === 'responses';
  const carried = ownForm && !settings.omissions.has('items') ? call.items : undefined;
  const asked = carried ? carried.effort : request.reasoning_effort;
  const unknown = removeNulls({ ...call.unknown, ...(ownForm && call.served) });
  refuseUnsupported(request, ownForm ? {} : unknown);
  const own = ownForm ? unknown : {};
  const reasoning = buildReasoning(asked, own, settings);
  const { sent, dropped } = splitFields(request, settings, { reasoning, ...settings.set });
  const tools = convertTools({ ...call, items: carried }, settings, ownForm);
  if (tools.droppedHosted) dropped.push('tools');
  const isPassed = (field: string): boolean => ownForm || cacheFields.has(field);
  const passed = Object.fromEntries(Object.entries(unknown).filter(([field]) => isPassed(field)));
  dropped.push(...Object.keys(unknown).filter((field) => !isPassed(field)));
  const hasState = [...settings.states.values()].some((parts) => parts.some((part) => 'opaque' in part));
  if (hasState && settings.omissions.has('state')) dropped.push('reasoning');

  const instructions = settings.quirks.bindsPrefix ? call.instructions : undefined;
  // Vendors cache from the front, so tools and input precede fields that may change between turns.
  const fields: JsonRecord = {
    model: settings.model,
    tools: tools.tools,
    input: convertMessages(request.messages, {
      ...settings,
      customTools: settings.quirks.supportsCustomTools !== false,
      carried,
      itemTools: tools.itemTools,
      instructions,
    }),
    instructions: instructions && textIn(instructions.content),
    ...passed,
    ...tools.choice,
    store: false,
    include: buildInclude(sent, own, settings),
    text: buildTextField(request, own),
    reasoning,
    max_output_tokens: chooseOutputLimit(request, settings),
    ...sent,
    logprobs: undefined,
  };
  applyRowFields(fields, settings);
  const body = dropUndefined(fields);
  const { effort } = asRecord(body['reasoning']);
  const { verbosity } = asRecord(body['text']);
  if (isText(asked) && !isText(effort)) dropped.push('reasoning_effort');
  if (isText(request.verbosity) && !isText(verbosity)) dropped.push('verbosity');
  const limit = body['max_output_tokens'];
  return {
    body,
    dropped,
    ...(isText(effort) && effort !== asked && { effort }),
    ...(typeof limit === 'number' && { outputTokensMax: limit }),
    toolChoice: tools.changedChoice,
    stop: splitStopSequences(call, settings, { sentMax: 0 }).watched,
    wrappedTools: tools.wrapped,
    carriesItems: carried !== undefined,
  };
}

const isText = (value: unknown): value is string => typeof value === 'string';

/** Throws CannotCarry for fields that must not be dropped and that no Responses upstream supports. */
function refuseUnsupported({ n, response_format: format }: ChatRequest, unknown: JsonRecord): void {
  if (typeof n === 'number' && n > 1) throw createUnsupportedError('n');
  if (format && !['text', 'json_object', 'json_schema'].includes(format.type))
    throw createUnsupportedError('response_format');
  const { modalities } = unknown;
  if (Array.isArray(modalities) && modalities.some((each) => each !== 'text'))
    throw createUnsupportedError('modalities');
  if (unknown['audio']) throw createUnsupportedError('audio');
}

const createUnsupportedError = (param: string): CannotCarry =>
  new CannotCarry(param, `This model does not support '${param}'.`);

/** Splits fields that may be dropped into those that are sent and the names of the others. */
function splitFields(
  request: ChatRequest,
  { quirks }: RequestSettings,
  { reasoning }: JsonRecord,
): { sent: JsonRecord; dropped: string[] } {
  const given = removeNulls(request);
  const dropped: string[] = unsupportedFields.filter((field) => given[field] !== undefined);
  const refused = findRefusedSampling(given, quirks, asRecord(reasoning)['effort']);
  const sent: JsonRecord = {};
  for (const field of [...sameFields, 'logprobs', 'top_logprobs']) {
    if (given[field] === undefined) continue;
    const isKnown = !quirks.acceptedFields || quirks.acceptedFields.has(field);
    if (isKnown && !refused.includes(field)) sent[field] = given[field];
    else dropped.push(field);
  }
  return { sent, dropped };
}

function buildInclude(
  sent: JsonRecord,
  own: JsonRecord,
  { omissions }: RequestSettings,
): string[] | undefined {
  const asked = Array.isArray(own['include'])
    ? own['include'].filter((each) => typeof each === 'string')
    : [];
  const encrypted = 'reasoning.encrypted_content';
  const names = new Set<string>([encrypted, ...asked]);
  if (sent['logprobs'] === true) names.add('message.output_text.logprobs');
  if (omissions.has('include')) names.delete(encrypted);
  return names.size > 0 ? [...names] : undefined;
}

function buildTextField(
  { response_format: format, verbosity }: ChatRequest,
  own: JsonRecord,
): JsonRecord | undefined {
  const schema = asRecord(format?.['json_schema']);
  const { name, description, schema: shape, strict } = schema;
  const sent = removeNulls({
    ...asRecord(own['text']),
    format:
      format?.type === 'json_schema'
        ? removeNulls({ type: format.type, name, description, schema: shape, strict })
        : format && { type: format.type },
    verbosity,
  });
  return Object.keys(sent).length > 0 ? sent : undefined;
}

/** Only clients of Responses ask for a summary, since Chat Completions has no field for it. */
function buildReasoning(
  asked: ChatRequest['reasoning_effort'],
  own: JsonRecord,
  { quirks }: RequestSettings,
): JsonRecord | undefined {
  const effort = typeof asked === 'string' ? chooseEffort(asked, quirks.efforts ?? efforts) : undefined;
  const sent = removeNulls({ ...asRecord(own['reasoning']), effort });
  if (quirks.summaryKind && typeof sent['summary'] === 'string') sent['summary'] = quirks.summaryKind;
  return Object.keys(sent).length > 0 ? sent : undefined;
}

function chooseOutputLimit(request: ChatRequest, settings: RequestSettings): number | undefined {
  if (settings.omissions.has('limit')) return undefined;
  const { max_tokens: older, max_completion_tokens: newer } = request;
  const limits = [older, newer, settings.outputTokensLimit].filter((each) => typeof each === 'number');
  if (limits.length === 0) return undefined;
  return Math.max(outputTokensMin, Math.min(...limits, settings.maxOutputTokens ?? Infinity));
}

const dropUndefined = (source: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(source).filter(([, value]) => value !== undefined));

// Compaction by the upstream: at a path of its own, or by an item at the end of the input. If the upstream does not
// support it, or the limit is too low for it, the model is asked for a summary like any other. Source: OpenAI's pages
// "Compaction" and "Compact a response", November 2026.

const compactPath = '/responses/compact';
/** Fields that the path accepts. */
const compactFields = new Set(
  'model input instructions prompt_cache_key prompt_cache_options prompt_cache_retention service_tier image'.split(
    ' ',
  ),
);
/**
 * The path accepts no limit, and a compaction that meets one ends without an item. Compactions have stayed below this,
 * so the call's own limit, which is reserved for it, must not be lower.
 */
const compactionTokensMax = 16_384;

export function buildBody(call: CanonicalCall, settings: RequestSettings): SentBody {
  const sent = buildResponsesBody(call, settings);
  const { compacts } = call;
  const { quirks } = settings;
  if (!compacts || !sent.carriesItems || !quirks.supportsCompaction) return sent;
  if ((sent.outputTokensMax ?? Infinity) < compactionTokensMax)
    return buildResponsesBody(call, { ...settings, quirks: { ...quirks, supportsCompaction: false } });
  const { tool_choice: _choice, ...body } = sent.body;
  return { ...sent, body, ...(compacts === 'path' && moveToCompactPath(sent)), compacts: true };
}

function moveToCompactPath({ body }: SentBody): Partial<SentBody> {
  const taken = Object.entries(body).filter(([field]) => compactFields.has(field));
  // The path replaces the last item.
  const input = listIn(body['input']).slice(0, -1);
  return { body: { ...Object.fromEntries(taken), input }, path: compactPath, outputTokensMax: undefined };
}

/** Fields that a count of the input accepts [developers.openai.com, "Count input tokens"]. */
const countedFields = new Set(
  'model input instructions tools tool_choice parallel_tool_calls reasoning text truncation'.split(' '),
);

/** Fields that tenants may send beside those that the relay reads itself. */
const tenantFields = parseFieldRules([
  // OpenAI [openai-node 7.55, ResponseCreateParams, November 2026].
  'include max_tool_calls truncation image.context_compression',
  'prompt_cache_retention prompt_cache_options.mode prompt_cache_options.ttl',
  prefixFields('reasoning', 'effort summary generate_summary context'),
  // Open Responses [openresponses.org, April 2026].
  'presence_penalty frequency_penalty',
]);

export const responses: DialectCode = {
  body: buildBody,
  tenantFields,
  counting: {
    path: '/responses/input_tokens',
    body: (body) => Object.fromEntries(Object.entries(body).filter(([field]) => countedFields.has(field))),
    tokens: ({ input_tokens: tokens }) => tokens,
  },
  submissions,
  Reader: ResponsesReader,
};
