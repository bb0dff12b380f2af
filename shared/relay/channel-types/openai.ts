import type { ChannelType } from '../channel-type.ts';

/** Any endpoint that speaks OpenAI's Chat Completions: the key as a bearer token, the path behind the base. */
export const openai: ChannelType = {
  address: (channel) => `${channel.endpoint.replace(/\/+$/, '')}/chat/completions`,
  credentials: (secret) => ({ authorization: `Bearer ${secret}` }),
};
