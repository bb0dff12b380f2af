import type { ChannelType } from '../channel-type.ts';

/** Amazon Bedrock's OpenAI-compatible endpoint, called with the function's own role: there is no secret. */
export const bedrock: ChannelType = {
  address: ({ endpoint }) => `${endpoint}/chat/completions`,
  credentials: () => ({}),
  awsScope: ({ region = '' }) => ({ service: 'bedrock', region }),
  limitField: () => 'max_completion_tokens',
  /** It refuses the older name of the limit. */
  adjust({ max_tokens: older, ...request }) {
    const limit = request.max_completion_tokens ?? older;
    return limit === undefined ? request : { ...request, max_completion_tokens: limit };
  },
};
