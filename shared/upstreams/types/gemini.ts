import type { ChatRequest } from '../../wire/chat-request.ts';
import type { ChannelType } from '../channel-type.ts';

/** It answers any other field with a 400 `Unknown name ...: Cannot find field`. */
const knownFields = new Set<string>([
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'n',
  'temperature',
  'top_p',
  'stop',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'response_format',
  'reasoning_effort',
  'modalities',
  'service_tier',
  'extra_body',
]);

/** Google's Gemini API through its OpenAI-compatible endpoint. */
export const gemini: ChannelType = {
  address: ({ endpoint }) => `${endpoint}/chat/completions`,
  credentials: (secret) => ({ authorization: `Bearer ${secret}` }),
  limitField: () => 'max_tokens',
  adjust: (request) =>
    Object.fromEntries(Object.entries(request).filter(([field]) => knownFields.has(field))) as ChatRequest,
  /** A wrong key is told with a 400. */
  ownFault: (status, error) =>
    status === 400 && /\bAPI key (not valid|not found|expired)/i.test(String(error['message']))
      ? 'secret'
      : undefined,
};
