/** Anthropic's Messages, as Anthropic, Claude on Bedrock and compatible endpoints of other vendors speak it. */
import type { Dialect } from '../../dialect.ts';
import { MessagesReader } from './events.ts';
import { messagesError } from './failure.ts';
import { modelRules } from './model-rules.ts';
import { messagesBody } from './request.ts';

/** The version that all these endpoints know. A row may name a later one. */
const defaultVersion = '2023-06-01';
/** Without it the vendor refuses `thinking.block_binding`. Endpoints that check betas know it where the model binds. */
const bindingControls = { 'anthropic-beta': 'thinking-binding-controls-2026-08-01' };

export const messages: Dialect = {
  name: 'messages',
  path: '/messages',
  body: messagesBody,
  headers: ({ apiVersion, model }) => ({
    'anthropic-version': apiVersion ?? defaultVersion,
    ...(modelRules(model).bindsThinking && bindingControls),
  }),
  Reader: MessagesReader,
  error: messagesError,
};
