import type { ChatMessage, ChatRequest } from '../wire/chat-request.ts';
import type { JsonRecord } from './json-record.ts';

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
  if (Array.isArray(body['tools']) && body['tools'].length === 0) delete body['tools'];
  if (body['tools'] === undefined) delete body['tool_choice'];
  lowerLimits(body, dialect.maxOutputTokens);
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

function lowerLimits(body: JsonRecord, max: number | undefined): void {
  if (max === undefined) return;
  for (const field of ['max_tokens', 'max_completion_tokens']) {
    const asked = body[field];
    if (typeof asked === 'number' && asked > max) body[field] = max;
  }
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
