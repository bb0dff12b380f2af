/** Any endpoint that speaks OpenAI's Chat Completions: the key as a bearer token, the path behind the base address. */
import type { ChannelSetup } from '../channel-setup.ts';
import { bearer, type ChannelType } from '../channel-type.ts';
import { plainModelList } from '../model-listing.ts';

export const openai: ChannelType = {
  credentials: bearer,
  // OpenAI's own models refuse `max_tokens` where they reason; most others know nothing else.
  limitField: ({ endpoint }) =>
    new URL(endpoint).hostname === 'api.openai.com' ? 'max_completion_tokens' : 'max_tokens',
};

export const openaiSetup: ChannelSetup = {
  attributes: {},
  models: plainModelList,
  questions: [
    { attribute: 'endpoint', question: 'Base address of the upstream', usual: 'https://api.openai.com/v1' },
  ],
};
