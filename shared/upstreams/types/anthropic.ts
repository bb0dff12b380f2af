/** Anthropic's OpenAI-compatible endpoint. It ignores most fields that it does not support. */
import type { ChannelSetup } from '../channel-setup.ts';
import { bearer, type ChannelType } from '../channel-type.ts';
import { readModelPage } from '../model-listing.ts';

export const anthropic: ChannelType = {
  credentials: bearer,
  limitField: () => 'max_tokens',
  quirks: () => ({ oneSampling: true }),
  /** Anthropic refuses an account without credit with a 400. */
  ownFault: (status, error) =>
    status === 400 && /credit balance is too low/i.test(String(error.message)) ? 'secret' : undefined,
};

export const anthropicSetup: ChannelSetup = {
  attributes: {},
  ownEndpoint: () => 'https://api.anthropic.com/v1',
  /** The list is part of the native API, which does not accept bearer tokens. */
  models: {
    address: ({ endpoint }, after) =>
      `${endpoint}/models?limit=1000${after === undefined ? '' : `&after_id=${encodeURIComponent(after)}`}`,
    headers: (secret) => ({ 'x-api-key': secret, 'anthropic-version': '2023-06-01' }),
    read: readModelPage,
  },
  questions: [],
};
