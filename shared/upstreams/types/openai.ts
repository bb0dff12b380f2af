/** Any endpoint with a known dialect: a bearer token, and the path after the base address. */
import {
  type ChannelSetup,
  type ChannelAttributes,
  type ChannelType,
  plainModelList,
} from '../channel-type.ts';

const hostOf = ({ endpoint }: ChannelAttributes): string => new URL(endpoint).hostname;
const isOpenai = (channel: ChannelAttributes): boolean => hostOf(channel) === 'api.openai.com';
/** AWS's endpoints for API keys, which refuse other summaries than "auto" [coder/coder 29229, 2026-09-11]. */
const isOfAws = (channel: ChannelAttributes): boolean =>
  /^bedrock-(?:mantle|runtime)\./.test(hostOf(channel));

export const openai: ChannelType = {
  // Compatible servers of Anthropic's API read the key from either header.
  credentials: (secret, _channel, dialect) => ({
    authorization: `Bearer ${secret}`,
    ...(dialect === 'messages' && { 'x-api-key': secret }),
  }),
  // Some of OpenAI's models refuse tools elsewhere.
  alsoSpeaks: ['responses', 'embeddings'],
  // OpenAI's reasoning models refuse `max_tokens`; most other upstreams accept only `max_tokens`.
  limitField: (channel) => (isOpenai(channel) ? 'max_completion_tokens' : 'max_tokens'),
  // Compatible servers do not ask for it, and some refuse a body with it.
  endUserField: (channel) => (isOpenai(channel) ? 'safety_identifier' : undefined),
  // OpenAI refuses fields of messages that it does not know; compatible servers mostly ignore them. Few of these know
  // custom tools.
  quirks: (channel) => ({
    ...(isOpenai(channel) && {
      acceptedEchoes: [],
      supportsCustomTools: true,
      packsVectors: true,
      takesDerivedFields: true,
    }),
    ...(isOfAws(channel) && { summaryKind: 'auto' }),
  }),
};

export const openaiSetup: ChannelSetup = {
  attributes: {},
  models: plainModelList,
  questions: [
    {
      attribute: 'endpoint',
      question: 'Base address of the upstream',
      defaultAnswer: 'https://api.openai.com/v1',
    },
  ],
};
