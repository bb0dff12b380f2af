/** Anthropic's Messages, as Anthropic, Claude on Bedrock and compatible endpoints of other vendors speak it. */
import type { Dialect } from '../../dialect.ts';
import { MessagesReader } from './events.ts';
import { messagesError } from './failure.ts';
import { messagesBody } from './request.ts';

/** The version that all these endpoints know. A row may name a later one. */
const defaultVersion = '2023-06-01';

export const messages: Dialect = {
  name: 'messages',
  path: '/messages',
  body: messagesBody,
  headers: ({ apiVersion }) => ({ 'anthropic-version': apiVersion ?? defaultVersion }),
  Reader: MessagesReader,
  error: messagesError,
};
