/** OpenAI's Chat Completions, with the variants of compatible upstreams. */
import type { Dialect } from '../../dialect.ts';
import { ChatReader } from './events.ts';
import { chatError } from './failure.ts';
import { chatBody } from './request.ts';

export const chat: Dialect = {
  name: 'chat',
  path: '/chat/completions',
  body: chatBody,
  Reader: ChatReader,
  error: chatError,
};
