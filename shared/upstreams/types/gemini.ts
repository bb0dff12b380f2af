/** Google's Gemini API through its OpenAI-compatible endpoint. */
import type { ChannelSetup } from '../channel-setup.ts';
import { bearer, type ChannelType } from '../channel-type.ts';
import { readModelPage } from '../model-listing.ts';

/** Gemini refuses any other field with a 400 `Unknown name ...: Cannot find field`. */
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

export const gemini: ChannelType = {
  credentials: bearer,
  limitField: () => 'max_tokens',
  quirks: () => ({ fields: knownFields }),
  /** Gemini refuses a wrong key with a 400. */
  ownFault: (status, error) =>
    status === 400 && /\bAPI key (not valid|not found|expired)/i.test(String(error.message))
      ? 'secret'
      : undefined,
};

export const geminiSetup: ChannelSetup = {
  attributes: {},
  ownEndpoint: () => 'https://generativelanguage.googleapis.com/v1beta/openai',
  models: {
    address: ({ endpoint }) => `${endpoint}/models`,
    /** Gemini lists `models/gemini-...` and also accepts the short name. */
    read(body) {
      const page = readModelPage(body);
      return page && { ...page, models: page.models.map((name) => name.replace(/^models\//, '')) };
    },
  },
  questions: [],
};
