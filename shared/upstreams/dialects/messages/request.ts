/** Builds the body of a Messages request for one channel. */
import type { CanonicalCall } from '../../../wire/canonical-call.ts';
import type { ChatMessage } from '../../../wire/chat-request.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';
import type { RequestSettings, SentBody } from '../../dialect.ts';

/** Converts a call to the body for an upstream. */
export function messagesBody({ request, unknown }: CanonicalCall, settings: RequestSettings): SentBody {
  const { messages } = request;
  const firstTurn = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer');
  const system = messages.slice(0, firstTurn < 0 ? messages.length : firstTurn).map(textOf);
  const outputTokensMax = Math.min(
    request.max_completion_tokens ?? request.max_tokens ?? settings.outputTokensDefault,
    settings.maxOutputTokens ?? Infinity,
    settings.outputTokensLimit ?? Infinity,
  );
  const body: JsonRecord = { model: settings.model };
  if (system.length > 0) body['system'] = system.map((text) => ({ type: 'text', text }));
  body['messages'] = messages.slice(system.length).map((message) => ({
    role: message.role === 'assistant' ? 'assistant' : 'user',
    content: [{ type: 'text', text: textOf(message) }],
  }));
  body['max_tokens'] = outputTokensMax;
  if (settings.stream) body['stream'] = true;
  Object.assign(body, settings.set);
  for (const field of settings.drop) delete body[field];
  return { body, dropped: Object.keys(unknown), outputTokensMax, wrapped: new Set() };
}

const textOf = ({ content }: ChatMessage): string =>
  typeof content === 'string' ? content : (content ?? []).map(({ text }) => text ?? '').join('');
