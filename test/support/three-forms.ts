import { CoreRig, data, demoKey, done, type Answer, type RigOptions, type Step } from './core-rig.ts';
import { chunk, toolDelta } from './upstream-frames.ts';

/** One call and one answer in the three forms of clients and upstreams, streamed and as a whole. */

type Json = Record<string, unknown>;
export type Form = 'chat' | 'messages' | 'responses';
export const forms: readonly Form[] = ['chat', 'messages', 'responses'];
/** Each form of a client, streamed and as a whole. */
export const clients = forms.flatMap((form) =>
  [true, false].map((isStreamed) => [form, isStreamed] as const),
);

/** The row of a channel with this form. */
export const rowOf = (dialect: Form): Json => ({ dialect, endpoint: `https://${dialect}.test/v1` });

const record = (value: unknown): Json => value as Json;
const list = (value: unknown): Json[] => (value ?? []) as Json[];

const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
const event = (value: Json): string => `event: ${String(value['type'])}\n${data(value)}`;

/** The last events of a Messages answer. */
export const messageEnd = (reason: string): Step[] => [
  event({ type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 3 } }),
  event({ type: 'message_stop' }),
];
const messageStart = event({
  type: 'message_start',
  message: { id: 'msg_1', type: 'message', role: 'assistant', content: [], usage: { input_tokens: 9 } },
});
export const block = (index: number, start: Json, ...deltas: Json[]): Step[] => [
  event({ type: 'content_block_start', index, content_block: start }),
  ...deltas.map((delta) => event({ type: 'content_block_delta', index, delta })),
  event({ type: 'content_block_stop', index }),
];

/** An upstream answer with the given blocks, items or deltas. */
export const answers = {
  chat: (deltas: object[], reason: string): Step[] => [
    ...deltas.map((delta) => data(chunk(delta))),
    data(chunk({}, reason)),
    data({ choices: [], usage }),
    done,
  ],
  messages: (blocks: Step[], reason: string): Step[] => [messageStart, ...blocks, ...messageEnd(reason)],
  responses: (output: Json[]): Step[] => [
    event({ type: 'response.created', response: { id: 'resp_1', status: 'in_progress', output: [] } }),
    ...output.map((item, output_index) => event({ type: 'response.output_item.done', output_index, item })),
    event({
      type: 'response.completed',
      response: { id: 'resp_1', status: 'completed', output, usage: { input_tokens: 9, output_tokens: 3 } },
    }),
  ],
};

/** An answer that calls `f`, with arguments in pieces. */
export const callsWith: Record<Form, (...pieces: string[]) => Step[]> = {
  chat: (...pieces) =>
    answers.chat(
      pieces.map((text, i) =>
        toolDelta(0, {
          ...(i === 0 && { id: 'call_1', type: 'function' }),
          function: { ...(i === 0 && { name: 'f' }), arguments: text },
        }),
      ),
      'tool_calls',
    ),
  messages: (...pieces) =>
    answers.messages(
      block(
        0,
        { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
        ...pieces.map((text) => ({ type: 'input_json_delta', partial_json: text })),
      ),
      'tool_use',
    ),
  responses: (...pieces) =>
    answers.responses([
      { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: pieces.join('') },
    ]),
};

const parameters = { type: 'object', properties: { a: { type: 'string' } } };
const requests: Record<Form, { path: string; body: Json }> = {
  chat: {
    path: '/v1/chat/completions',
    body: {
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ type: 'function', function: { name: 'f', parameters } }],
    },
  },
  messages: {
    path: '/v1/messages',
    body: {
      max_tokens: 100,
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ name: 'f', input_schema: parameters }],
    },
  },
  responses: {
    path: '/v1/responses',
    body: { input: 'hi', tools: [{ type: 'function', name: 'f', parameters }] },
  },
};

/** Requests the model `m` in a form. */
export async function askIn(
  form: Form,
  more: Json,
  { steps, ...options }: RigOptions & { steps: Step[] },
): Promise<{ rig: CoreRig; answer: Answer; sent: Json }> {
  const { path, body } = requests[form];
  const rig = new CoreRig(options);
  rig.upstream({ steps });
  const answer = await rig.post(
    { model: 'm', ...body, ...more },
    { path, headers: { authorization: `Bearer ${demoKey}` } },
  );
  return { rig, answer, sent: rig.sent.at(-1)?.json ?? {} };
}

/** The events of a stream. */
export const eventsOf = ({ text }: Answer): Json[] =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => record(JSON.parse(json)));

/** The calls of an answer: name, id and arguments, joined as the client joins them. */
export function callsOf(
  form: Form,
  answer: Answer,
  isStreamed: boolean,
): { name: string; id: string; text: string }[] {
  const calls: { name: string; id: string; text: string }[] = [];
  const add = (index: number, { name = '', id = '', text = '' }: Partial<(typeof calls)[number]>): void => {
    const known = (calls[index] ??= { name: '', id: '', text: '' });
    calls[index] = { name: known.name + name, id: known.id + id, text: known.text + text };
  };
  const whole = isStreamed ? {} : record(JSON.parse(answer.text));
  if (form === 'chat') {
    const sources = isStreamed
      ? eventsOf(answer).flatMap(({ choices }) => list(choices).map(({ delta }) => record(delta)))
      : list(whole['choices']).map(({ message }) => record(message));
    for (const { tool_calls: pieces } of sources)
      for (const { index, id, function: called } of list(pieces)) {
        const { name, arguments: text } = record(called ?? {});
        add(Number(index), { name: name as string, id: id as string, text: text as string });
      }
  } else if (form === 'messages' && isStreamed) {
    const order: unknown[] = [];
    for (const { type, index, content_block: started, delta } of eventsOf(answer)) {
      const { type: kind, name, id } = record(started ?? {});
      if (type === 'content_block_start' && kind === 'tool_use')
        add(order.push(index) - 1, { name: name as string, id: id as string });
      const { partial_json: text } = record(delta ?? {});
      if (typeof text === 'string') add(order.indexOf(index), { text });
    }
  } else if (form === 'messages') {
    for (const { type, name, id, input } of list(whole['content']))
      if (type === 'tool_use')
        calls.push({ name: name as string, id: id as string, text: JSON.stringify(input) });
  } else {
    const response = isStreamed ? record(eventsOf(answer).at(-1)?.['response']) : whole;
    for (const { type, name, call_id: id, arguments: text } of list(response['output']))
      if (type === 'function_call')
        calls.push({ name: name as string, id: id as string, text: text as string });
  }
  // Clients of Messages read a block without pieces as an empty object.
  return form === 'messages' ? calls.map((call) => ({ ...call, text: call.text || '{}' })) : calls;
}
