/** Anthropic's OpenAI-compatible endpoint. Most of what it cannot do it ignores. */
import type { ChannelSetup } from '../channel-setup.ts';
import { bearer, type ChannelType } from '../channel-type.ts';
import { readModelPage } from '../model-listing.ts';

export const anthropic: ChannelType = {
  credentials: bearer,
  limitField: () => 'max_tokens',
  /** Its newer models refuse a request with both; the temperature is what clients mean more often. */
  adjust({ top_p: topP, ...request }) {
    const both = typeof request.temperature === 'number' && typeof topP === 'number';
    return topP === undefined || both ? request : { ...request, top_p: topP };
  },
  /** An account without money answers 400. */
  ownFault: (status, error) =>
    status === 400 && /credit balance is too low/i.test(String(error['message'])) ? 'secret' : undefined,
};

export const anthropicSetup: ChannelSetup = {
  attributes: {},
  ownEndpoint: () => 'https://api.anthropic.com/v1',
  /** Part of its native interface, which knows no bearer token. */
  models: {
    address: ({ endpoint }, after) =>
      `${endpoint}/models?limit=1000${after === undefined ? '' : `&after_id=${encodeURIComponent(after)}`}`,
    headers: (secret) => ({ 'x-api-key': secret, 'anthropic-version': '2023-06-01' }),
    read: readModelPage,
  },
  questions: [],
};
