import type { ChannelType } from '../channel-type.ts';

/** Anthropic's OpenAI-compatible endpoint. Most of what it cannot do it ignores. */
export const anthropic: ChannelType = {
  address: ({ endpoint }) => `${endpoint}/chat/completions`,
  credentials: (secret) => ({ authorization: `Bearer ${secret}` }),
  limitField: () => 'max_tokens',
  /** Its newer models refuse a request with both; the temperature is what clients mean more often. */
  adjust({ top_p: topP, ...request }) {
    const both = typeof request.temperature === 'number' && typeof topP === 'number';
    return topP === undefined || both ? request : { ...request, top_p: topP };
  },
  /** An account without money is told with a 400. */
  ownFault: (status, error) =>
    status === 400 && /credit balance is too low/i.test(String(error['message'])) ? 'secret' : undefined,
};
