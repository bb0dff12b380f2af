/** Google's Gemini API through its OpenAI-compatible endpoint. */
import { type ChannelSetup, type ChannelType, readModelPage } from '../channel-type.ts';

/** Gemini refuses any other field with a 400 `Unknown name ...: Cannot find field`. */
const knownFields: ReadonlySet<string> = new Set(
  (
    'model messages stream stream_options max_tokens max_completion_tokens n temperature top_p stop tools ' +
    'tool_choice parallel_tool_calls response_format reasoning_effort modalities service_tier extra_body'
  ).split(' '),
);

export const gemini: ChannelType = {
  credentials: (secret) => ({ authorization: `Bearer ${secret}` }),
  alsoSpeaks: ['embeddings'],
  limitField: () => 'max_tokens',
  // An unknown field of a message is refused as one of the request is.
  quirks: () => ({
    acceptedFields: knownFields,
    acceptedEchoes: ['extra_content'],
    takesDerivedFields: true,
  }),
};

export const geminiSetup: ChannelSetup = {
  attributes: {},
  defaultEndpoint: () => 'https://generativelanguage.googleapis.com/v1beta/openai',
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
