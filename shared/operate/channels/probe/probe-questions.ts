/**
 * The questions of a probe, as data: what a call asks for, and what its answer shows. An upstream that refuses the
 * call cannot do it.
 */
import type { ChatContentPart, ChatMessage, ChatRequest } from '../../../wire/chat-request.ts';
import { asRecord, parseJson } from '../../../wire/json-record.ts';
import type { ModellessRequest, ProbeAnswer } from './probe-call.ts';

export interface ProbeQuestion {
  capability: 'tools' | 'json_schema' | 'images' | 'system_anywhere';
  /** Fields of the request. */
  fields?: Partial<ChatRequest>;
  /** Messages before the last one. */
  before?: ChatMessage[];
  /** Parts of the last message, before its text. */
  parts?: ChatContentPart[];
  /** The text of the last message. */
  text?: string;
  /** Undefined: the answer does not show it. */
  decide: (answer: ProbeAnswer) => boolean | undefined;
}

const plainText = 'Answer with the one word: ready';

/** A square of 32 x 32 grey points. Some vendors refuse smaller pictures. */
const picture =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAAAAABWESUoAAAAFklEQVR42mNoIAAYRhWMKhhVMFIVAABCAAAfN5c2AAAAAABJRU5ErkJggg==';

const isAnswered = (): true => true;

export const toolsQuestion: ProbeQuestion = {
  capability: 'tools',
  fields: {
    tools: [
      {
        type: 'function',
        function: {
          name: 'population_of',
          description: 'The number of people who live in a city.',
          parameters: {
            type: 'object',
            properties: { city: { type: 'string' } },
            required: ['city'],
            additionalProperties: false,
          },
        },
      },
    ],
  },
  text: 'Call the tool population_of for Paris, for Rome and for Oslo: three calls in parallel, all at once.',
  // A server that does not know tools leaves them out, and its model answers with a text.
  decide: ({ calls, isCut }) => (calls > 0 ? true : isCut ? undefined : false),
};

/** What else the answer to the question about tools shows. */
export const parallelTools = ({ calls, isCut }: ProbeAnswer): boolean | undefined =>
  calls > 1 ? true : calls === 1 && !isCut ? false : undefined;

/** The calls of each list are sent as one; if that is refused, one by one. */
export const otherQuestions: readonly (readonly ProbeQuestion[])[] = [
  [
    {
      capability: 'json_schema',
      fields: {
        response_format: {
          type: 'json_schema',
          json_schema: {
            name: 'status',
            strict: true,
            schema: {
              type: 'object',
              properties: { status: { type: 'string' } },
              required: ['status'],
              additionalProperties: false,
            },
          },
        },
      },
      decide: ({ text, isCut }) =>
        typeof asRecord(parseJson(text))['status'] === 'string' ? true : isCut ? undefined : false,
    },
  ],
  [
    {
      capability: 'images',
      parts: [{ type: 'image_url', image_url: { url: picture } }],
      decide: isAnswered,
    },
    {
      capability: 'system_anywhere',
      before: [
        { role: 'system', content: 'You answer with one word.' },
        { role: 'user', content: 'Good morning.' },
        { role: 'assistant', content: 'Hello.' },
        { role: 'system', content: 'From now on you answer in small letters.' },
      ],
      decide: isAnswered,
    },
  ],
];

/** One request that asks all the questions; none: a plain request. */
export function requestFor(
  questions: readonly ProbeQuestion[],
  fields: Partial<ChatRequest> = {},
): ModellessRequest {
  const text = questions.find((question) => question.text !== undefined)?.text ?? plainText;
  const parts = questions.flatMap((question) => question.parts ?? []);
  const content = parts.length > 0 ? [...parts, { type: 'text', text }] : text;
  return {
    ...Object.assign({}, ...questions.map((question) => question.fields), fields),
    messages: [...questions.flatMap(({ before = [] }) => before), { role: 'user', content }],
  };
}
