/** What a `web-` call searches for. */
import type { ChatMessage } from '../../wire/chat-request.ts';
import { cut, oneLine } from './search-text.ts';

/** Providers refuse or misread long queries. */
const queryLengthMax = 400;

/** The search query, in one line: the last text of the user. Empty: there is nothing to search for. */
export function searchQuery(messages: readonly ChatMessage[]): string {
  for (const message of messages.toReversed()) {
    const text = message.role === 'user' ? oneLine(textOf(message)) : '';
    if (text !== '') return cut(text, queryLengthMax);
  }
  return '';
}

function textOf({ content }: ChatMessage): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => (part.type === 'text' ? (part.text ?? '') : '')).join(' ');
}
