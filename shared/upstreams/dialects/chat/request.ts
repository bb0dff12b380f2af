/** Builds the body of a Chat Completions request for one channel. */
import type { CanonicalCall } from '../../../wire/canonical-call.ts';
import type { ChatMessage } from '../../../wire/chat-request.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';
import type { RequestSettings, SentBody } from '../../dialect.ts';
import { callersTools, priceFields } from '../../price-fields.ts';
import { limitFields } from '../../quirks.ts';

/**
 * Converts a call to the body for an upstream. Fields that the relay does not know are sent if the client wrote
 * Chat Completions, except nulls (absent), `priceFields` and tools of other types that the channel does not allow, and
 * fields that the channel drops or does not know. Requests a stream with usage unless the channel does not support it.
 * Content arrays are sent unchanged.
 */
export function chatBody({ form, request, unknown }: CanonicalCall, settings: RequestSettings): SentBody {
  const { quirks, allow } = settings;
  const dropped = form === 'chat' ? [] : Object.keys(unknown);
  const body: JsonRecord = withoutNulls(form === 'chat' ? { ...request, ...unknown } : request);
  delete body['official'];
  body['model'] = settings.model;
  body['messages'] = request.messages.map(messageToUpstream);
  const tools = request.tools?.filter(({ type }) => callersTools.has(type) || allow.includes(type)) ?? [];
  if (tools.length > 0) body['tools'] = tools;
  else delete body['tools'];
  if (body['tools'] === undefined) {
    delete body['tool_choice'];
    delete body['parallel_tool_calls'];
  }
  for (const field of priceFields) if (!allow.includes(field)) delete body[field];
  for (const field of Object.keys(body))
    if (quirks.fields && !quirks.fields.has(field)) {
      delete body[field];
      dropped.push(field);
    }
  if (quirks.oneSampling && typeof body['temperature'] === 'number' && typeof body['top_p'] === 'number') {
    delete body['top_p'];
    dropped.push('top_p');
  }
  moveLimit(body, quirks.limitFields);
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
  return { body, dropped, wrapped: new Set() };
}

/** Moves a limit out of a field that the upstream does not accept. */
function moveLimit(body: JsonRecord, accepted: readonly string[] | undefined): void {
  const [first] = accepted ?? [];
  if (first === undefined) return;
  for (const field of limitFields.filter((each) => !accepted?.includes(each))) {
    body[first] ??= body[field];
    if (body[first] === undefined) delete body[first];
    delete body[field];
  }
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
