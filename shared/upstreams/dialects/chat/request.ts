import type { ChatMessage, ChatRequest } from '../../../wire/chat-request.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';

export type LimitField = 'max_tokens' | 'max_completion_tokens';
const limitFields: LimitField[] = ['max_tokens', 'max_completion_tokens'];

/** Fields with which a caller could move a call to another model or price tier than the one that is billed. */
const priceFields = [
  'service_tier',
  'speed',
  'models',
  'fallbacks',
  'preset',
  'route',
  'provider',
  'plugins',
  'web_search_options',
  'search_parameters',
  'enable_search',
  'modalities',
  'audio',
  'extra_body',
];
/** Tools that the caller runs. All others run at the upstream, and cost there. */
const callersTools = new Set(['function', 'custom']);

/** How one channel wants to be asked. */
export interface UpstreamDialect {
  /** The upstream's name of the model. */
  model: string;
  /** false: the upstream is asked for one JSON answer. */
  stream: boolean;
  /** false: `stream_options.include_usage` is not sent. */
  includeUsage: boolean;
  /** Put over what the client sent. */
  set: JsonRecord;
  /** Fields that the upstream must not see. */
  drop: readonly string[];
  /** The most output tokens that a client may ask of this upstream. */
  maxOutputTokens?: number | undefined;
  /** What the balance covers: sent as a limit even where the client set none. */
  outputTokensLimit?: number | undefined;
  /** The field in which a limit is sent that the client did not set; one that it set keeps its field. */
  limitField: LimitField;
  /** Fields that change the price, and tools that run there, which this upstream may see all the same. */
  allow: readonly string[];
}

/**
 * A client's chat request as the body for an upstream. Everything that the client sent goes on, unknown fields
 * too, except nulls (absent), `official` (ours) and what the channel drops. Always asks to stream, with usage,
 * unless the channel cannot. Content arrays are passed on as they are.
 */
export function chatToUpstream(request: ChatRequest, dialect: UpstreamDialect): JsonRecord {
  const body: JsonRecord = withoutNulls(request);
  delete body['official'];
  body['model'] = dialect.model;
  body['messages'] = request.messages.map(messageToUpstream);
  const tools =
    request.tools?.filter(({ type }) => callersTools.has(type) || dialect.allow.includes(type)) ?? [];
  if (tools.length > 0) body['tools'] = tools;
  else delete body['tools'];
  if (body['tools'] === undefined) {
    delete body['tool_choice'];
    delete body['parallel_tool_calls'];
  }
  for (const field of priceFields) if (!dialect.allow.includes(field)) delete body[field];
  lowerLimits(body, dialect);
  Object.assign(body, dialect.set);
  for (const field of dialect.drop) delete body[field];

  delete body['stream'];
  delete body['stream_options'];
  if (dialect.stream) {
    body['stream'] = true;
    if (dialect.includeUsage)
      body['stream_options'] = { ...withoutNulls(request.stream_options ?? {}), include_usage: true };
  }
  return body;
}

function lowerLimits(
  body: JsonRecord,
  { maxOutputTokens, outputTokensLimit, limitField }: UpstreamDialect,
): void {
  const max = Math.min(maxOutputTokens ?? Infinity, outputTokensLimit ?? Infinity);
  const sent = limitFields.filter((field) => typeof body[field] === 'number');
  for (const field of sent) body[field] = Math.min(Number(body[field]), max);
  if (sent.length === 0 && outputTokensLimit !== undefined) body[limitField] = max;
}

/** `developer` is OpenAI's newer word for `system`. A null content stays: it belongs beside tool calls. */
function messageToUpstream(message: ChatMessage): JsonRecord {
  const body = withoutNulls(message);
  if (message.role === 'developer') body['role'] = 'system';
  if (message.content === null) body['content'] = null;
  return body;
}

const withoutNulls = (source: object): JsonRecord =>
  Object.fromEntries(Object.entries(source).filter(([, value]) => value !== null));
