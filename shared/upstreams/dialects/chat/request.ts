/** Builds the body of a Chat Completions request for one channel. */
import type { ChatMessage, ChatRequest } from '../../../wire/chat-request.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';
import { limitFields, type RequestSettings } from '../../dialect.ts';

/** Fields that could move a call to another model or price tier than the billed one. */
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
/** Types of tools that the caller runs. All others run at the upstream, which charges for them. */
const callersTools = new Set(['function', 'custom']);

/**
 * Converts a client's chat request to the body for an upstream. All fields are sent, unknown ones too, except
 * nulls (absent), `official` (the relay's own), `priceFields` and tools of other types that the channel does
 * not allow, and fields that the channel drops. Requests a stream with usage unless the channel does not
 * support it. Content arrays are sent unchanged.
 */
export function chatBody(request: ChatRequest, settings: RequestSettings): JsonRecord {
  const body: JsonRecord = withoutNulls(request);
  delete body['official'];
  body['model'] = settings.model;
  body['messages'] = request.messages.map(messageToUpstream);
  const tools =
    request.tools?.filter(({ type }) => callersTools.has(type) || settings.allow.includes(type)) ?? [];
  if (tools.length > 0) body['tools'] = tools;
  else delete body['tools'];
  if (body['tools'] === undefined) {
    delete body['tool_choice'];
    delete body['parallel_tool_calls'];
  }
  for (const field of priceFields) if (!settings.allow.includes(field)) delete body[field];
  lowerLimits(body, settings);
  Object.assign(body, settings.set);
  for (const field of settings.drop) delete body[field];

  delete body['stream'];
  delete body['stream_options'];
  if (settings.stream) {
    body['stream'] = true;
    if (settings.includeUsage)
      body['stream_options'] = { ...withoutNulls(request.stream_options ?? {}), include_usage: true };
  }
  return body;
}

function lowerLimits(
  body: JsonRecord,
  { maxOutputTokens, outputTokensLimit, limitField }: RequestSettings,
): void {
  const max = Math.min(maxOutputTokens ?? Infinity, outputTokensLimit ?? Infinity);
  const fields = new Set([...limitFields, limitField]);
  const sent = [...fields].filter((field) => typeof body[field] === 'number');
  for (const field of sent) body[field] = Math.min(Number(body[field]), max);
  if (sent.length === 0 && outputTokensLimit !== undefined) body[limitField] = max;
}

/** `developer` is OpenAI's newer name for `system`. A null content is kept: it accompanies tool calls. */
function messageToUpstream(message: ChatMessage): JsonRecord {
  const body = withoutNulls(message);
  if (message.role === 'developer') body['role'] = 'system';
  if (message.content === null) body['content'] = null;
  return body;
}

const withoutNulls = (source: object): JsonRecord =>
  Object.fromEntries(Object.entries(source).filter(([, value]) => value !== null));
