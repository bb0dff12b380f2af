import type { ChannelType } from '../channel-type.ts';

/** Any endpoint that speaks OpenAI's Chat Completions: the key as a bearer token, the path behind the base. */
export const openai: ChannelType = {
  address: ({ endpoint }) => `${endpoint}/chat/completions`,
  credentials: (secret) => ({ authorization: `Bearer ${secret}` }),
  // OpenAI's own models refuse `max_tokens` where they reason; most others know nothing else.
  limitField: ({ endpoint }) =>
    new URL(endpoint).hostname === 'api.openai.com' ? 'max_completion_tokens' : 'max_tokens',
};
