/** Builds the body of a Responses request for one channel. */
import type { CanonicalCall } from '../../../wire/canonical-call.ts';
import type { ChatMessage } from '../../../wire/chat-request.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';
import type { RequestSettings, SentBody } from '../../dialect.ts';

/** Nothing is stored upstream; so reasoning comes back encrypted, and goes up again with its turn. */
export function responsesBody({ request }: CanonicalCall, settings: RequestSettings): SentBody {
  const body: JsonRecord = {
    model: settings.model,
    input: request.messages.map(textItem),
    store: false,
    include: ['reasoning.encrypted_content'],
    ...settings.set,
  };
  for (const field of settings.drop) delete body[field];
  if (settings.stream) body['stream'] = true;
  return { body, dropped: [], wrapped: new Set() };
}

function textItem({ role, content }: ChatMessage): JsonRecord {
  const type = role === 'assistant' ? 'output_text' : 'input_text';
  const texts = typeof content === 'string' ? [content] : (content ?? []).map(({ text }) => text ?? '');
  return { type: 'message', role, content: texts.map((text) => ({ type, text })) };
}
