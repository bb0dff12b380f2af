/** Derives the search query of a `web-` call. */
import type { ChatMessage } from '../../wire/chat-request.ts';
import { cut, oneLine } from './search-text.ts';

/** Providers refuse long queries or return poor results for them. */
const queryLengthMax = 400;

/** The search query: the user's last text, as one line. Empty: the user sent no text. */
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
