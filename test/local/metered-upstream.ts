import type { Script, UpstreamCall } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';

/** An upstream's answer: its text and its reported counts. */
export interface MeteredAnswer {
  text: string;
  input: number;
  output: number;
  isCut: boolean;
}

type Wire = 'chat' | 'responses' | 'messages';

const wireOf = ({ path }: UpstreamCall): Wire =>
  path.endsWith('/responses') ? 'responses' : path.endsWith('/messages') ? 'messages' : 'chat';

const limitFields: Record<Wire, readonly string[]> = {
  chat: ['max_tokens', 'max_completion_tokens'],
  responses: ['max_output_tokens'],
  messages: ['max_tokens'],
};

/** The limits in an upstream request, by the fields of its dialect. Other fields would not be limits there. */
export const limitsIn = (call: UpstreamCall): number[] =>
  limitFields[wireOf(call)].map((field) => call.body[field]).filter((value) => typeof value === 'number');

/** An upstream that writes up to this many tokens, respects the limit that it receives, and counts honestly. */
export const writesUpTo =
  (tokens: number, { input = 8, holdMs = 0 } = {}): Script =>
  async (call, reply) => {
    if (holdMs > 0) await new Promise((resolve) => setTimeout(resolve, holdMs));
    const output = Math.min(tokens, ...limitsIn(call));
    await answersWith({ text: 'Words.', input, output, isCut: output < tokens })(call, reply);
  };

/** The answer in the dialect of the call, as a stream or as JSON. */
export const answersWith =
  (answer: MeteredAnswer): Script =>
  async (call, reply) => {
    const wire = wireOf(call);
    if (call.body['stream'] !== true) return reply.json(200, wholes[wire](answer));
    await reply.data(...streams[wire](answer));
    reply.end();
  };

const chatUsage = ({ input, output }: MeteredAnswer) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});
const otherUsage = ({ input, output }: MeteredAnswer) => ({ input_tokens: input, output_tokens: output });

const responseOf = (answer: MeteredAnswer, isDone: boolean) => ({
  id: 'resp_1',
  object: 'response',
  model: 'upstream-model',
  status: !isDone ? 'in_progress' : answer.isCut ? 'incomplete' : 'completed',
  incomplete_details: answer.isCut && isDone ? { reason: 'max_output_tokens' } : null,
  output: isDone ? [itemOf(answer)] : [],
  usage: isDone ? { ...otherUsage(answer), total_tokens: answer.input + answer.output } : null,
});
const itemOf = ({ text }: Pick<MeteredAnswer, 'text'>) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
});
const messageOf = (answer: MeteredAnswer) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'upstream-model',
  content: [{ type: 'text', text: answer.text }],
  stop_reason: answer.isCut ? 'max_tokens' : 'end_turn',
  usage: otherUsage(answer),
});
const finishOf = ({ isCut }: MeteredAnswer): string => (isCut ? 'length' : 'stop');

const wholes: Record<Wire, (answer: MeteredAnswer) => object> = {
  chat: (answer) => ({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model: 'upstream-model',
    choices: [
      { index: 0, message: { role: 'assistant', content: answer.text }, finish_reason: finishOf(answer) },
    ],
    usage: chatUsage(answer),
  }),
  responses: (answer) => responseOf(answer, true),
  messages: messageOf,
};

const streams: Record<Wire, (answer: MeteredAnswer) => (object | string)[]> = {
  chat: (answer) => [
    chunk({ role: 'assistant', content: answer.text }),
    chunk({}, finishOf(answer)),
    usageChunk(chatUsage(answer)),
    '[DONE]',
  ],
  responses: (answer) => [
    { type: 'response.created', response: responseOf(answer, false) },
    { type: 'response.output_item.added', output_index: 0, item: { ...itemOf({ text: '' }), content: [] } },
    {
      type: 'response.output_text.delta',
      item_id: 'msg_1',
      output_index: 0,
      content_index: 0,
      delta: answer.text,
    },
    { type: 'response.output_item.done', output_index: 0, item: itemOf(answer) },
    {
      type: answer.isCut ? 'response.incomplete' : 'response.completed',
      response: responseOf(answer, true),
    },
  ],
  messages: (answer) => [
    {
      type: 'message_start',
      message: { ...messageOf(answer), content: [], usage: { input_tokens: answer.input, output_tokens: 1 } },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: answer.text } },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: answer.isCut ? 'max_tokens' : 'end_turn' },
      usage: { output_tokens: answer.output },
    },
    { type: 'message_stop' },
  ],
};
