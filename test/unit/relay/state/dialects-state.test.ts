/** State through the real dialects and both endpoints: the upstream gets its own state back byte for byte. */
import { describe, expect, it } from 'vitest';
import { CoreRig, data, done, frames, hello, type Step } from '../../../support/core-rig.ts';
import { asRecord, valueAt } from '../../../../shared/wire/json.ts';

const id = 'call_of_the_vendor_0001';
const parameters = { type: 'object', properties: {} };
const tools = [{ type: 'function', function: { name: 'look', parameters } }];
const question = { role: 'user', content: 'hi' };
const chatTurn1 = { model: 'm', messages: [question], tools, stream: true };
const called = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }],
};
const chatTurn2 = {
  ...chatTurn1,
  messages: [question, called, { role: 'tool', tool_call_id: id, content: 'seen' }],
};

const chunk = (delta: object, finish_reason: string | null = null) =>
  data({ choices: [{ index: 0, delta, finish_reason }] });
const call = (more: object = {}) =>
  chunk({
    tool_calls: [{ index: 0, id, type: 'function', function: { name: 'look', arguments: '{}' }, ...more }],
  });
const end = [chunk({}, 'tool_calls'), done];

const signature = { google: { thought_signature: 'c2lnbmF0dXJl' } };
const signed: Step[] = [call({ extra_content: signature }), ...end];
const reasoned: Step[] = [
  chunk({ reasoning_content: 'I should ' }),
  chunk({ reasoning_content: 'look.' }),
  call(),
  ...end,
];

const event = (type: string, more: object) => `event: ${type}\n${data({ type, ...more })}`;
const reasoning = {
  type: 'reasoning',
  id: 'rs_vendor',
  summary: [],
  encrypted_content: 'gAAAAAB_of_the_vendor',
};
const functionCall = {
  type: 'function_call',
  id: 'fc_1',
  call_id: id,
  name: 'look',
  arguments: '{}',
  status: 'completed',
};
const responsesAnswer: Step[] = [
  event('response.created', { response: { id: 'resp_1', status: 'in_progress', output: [] } }),
  event('response.output_item.added', { output_index: 0, item: { ...reasoning, encrypted_content: null } }),
  event('response.output_item.done', { output_index: 0, item: reasoning }),
  event('response.output_item.added', { output_index: 1, item: { ...functionCall, arguments: '' } }),
  event('response.function_call_arguments.delta', { output_index: 1, item_id: 'fc_1', delta: '{}' }),
  event('response.output_item.done', { output_index: 1, item: functionCall }),
  event('response.completed', {
    response: {
      id: 'resp_1',
      status: 'completed',
      output: [reasoning, functionCall],
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    },
  }),
];

const thinking = { type: 'thinking', thinking: 'Let me look.', signature: 'c2lnbmVk' };
const messagesAnswer: Step[] = [
  event('message_start', {
    message: { id: 'msg_1', role: 'assistant', content: [], usage: { input_tokens: 1, output_tokens: 1 } },
  }),
  event('content_block_start', {
    index: 0,
    content_block: { type: 'thinking', thinking: '', signature: '' },
  }),
  event('content_block_delta', { index: 0, delta: { type: 'thinking_delta', thinking: thinking.thinking } }),
  event('content_block_delta', {
    index: 0,
    delta: { type: 'signature_delta', signature: thinking.signature },
  }),
  event('content_block_stop', { index: 0 }),
  event('content_block_start', {
    index: 1,
    content_block: { type: 'tool_use', id, name: 'look', input: {} },
  }),
  event('content_block_delta', { index: 1, delta: { type: 'input_json_delta', partial_json: '{}' } }),
  event('content_block_stop', { index: 1 }),
  event('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } }),
  event('message_stop', {}),
];

const lastSent = (rig: CoreRig, list: string): Record<string, unknown>[] =>
  [rig.sent.at(-1)?.json[list] ?? []].flat().map(asRecord);

const assistantSent = (rig: CoreRig) => lastSent(rig, 'messages').find(({ role }) => role === 'assistant');

const vendors: [string, Record<string, unknown>, Step[], (rig: CoreRig) => unknown, unknown][] = [
  [
    'a thought signature (chat)',
    { type: 'gemini' },
    signed,
    (rig) => valueAt(assistantSent(rig), ['tool_calls', 0, 'extra_content']),
    signature,
  ],
  [
    'reasoning text (chat)',
    {},
    reasoned,
    (rig) => assistantSent(rig)?.['reasoning_content'],
    'I should look.',
  ],
  [
    'encrypted reasoning (responses)',
    { dialect: 'responses' },
    responsesAnswer,
    (rig) => lastSent(rig, 'input').find(({ type }) => type === 'reasoning'),
    expect.objectContaining({ encrypted_content: reasoning.encrypted_content }),
  ],
  [
    'signed thinking (messages)',
    { dialect: 'messages' },
    messagesAnswer,
    (rig) => valueAt(assistantSent(rig), ['content', 0]),
    thinking,
  ],
];

describe.each(vendors)('%s', (_name, row, steps, found, wanted) => {
  const channels = [row];

  it('is restored for a chat client that sends only standard fields, in another environment', async () => {
    const rig = new CoreRig({ channels });
    const first = await rig.upstream({ steps }).post(chatTurn1);
    expect(first.text).toContain(id);
    expect(rig.turnStates.puts).toBe(1);
    const fresh = new CoreRig({ beside: rig, channels }).upstream({ steps });
    expect((await fresh.post(chatTurn2)).status).toBe(200);
    expect(found(fresh)).toEqual(wanted);
  });

  // The AI SDK's openai-compatible provider sends it back, and so does opencode.
  it('is restored for a chat client that sends the reasoning text back', async () => {
    const rig = new CoreRig({ channels }).upstream({ steps });
    await rig.post(chatTurn1);
    const messages = chatTurn2.messages.map((message) =>
      message.role === 'assistant' ? { ...message, reasoning_content: 'I should look.' } : message,
    );
    expect((await rig.post({ ...chatTurn2, messages })).status).toBe(200);
    expect(found(rig)).toEqual(wanted);
  });
});

/** One item of a Responses vendor, from its first event to its last. */
const items = (...list: Record<string, unknown>[]): Step[] => [
  ...list.flatMap((item, output_index) => [
    event('response.output_item.added', { output_index, item: { ...item, encrypted_content: null } }),
    event('response.output_item.done', { output_index, item }),
  ]),
  event('response.completed', { response: { id: 'resp_1', status: 'completed', output: list } }),
];
const message = (text: string, phase: string) => ({
  type: 'message',
  id: `msg_${phase}`,
  role: 'assistant',
  phase,
  content: [{ type: 'output_text', text, annotations: [] }],
});
const again = { ...reasoning, id: 'rs_again', encrypted_content: 'gAAAAAB_again' };
const block = (index: number, start: object, ...deltas: object[]): Step[] => [
  event('content_block_start', { index, content_block: start }),
  ...deltas.map((delta) => event('content_block_delta', { index, delta })),
  event('content_block_stop', { index }),
];
const think = (index: number, signature: string): Step[] =>
  block(
    index,
    { type: 'thinking', thinking: '', signature: '' },
    { type: 'thinking_delta', thinking: `Hm ${index}.` },
    { type: 'signature_delta', signature },
  );
const say = (index: number, text: string): Step[] =>
  block(index, { type: 'text', text: '' }, { type: 'text_delta', text });
const look = (index: number): Step[] =>
  block(
    index,
    { type: 'tool_use', id, name: 'look', input: {} },
    { type: 'input_json_delta', partial_json: '{}' },
  );
const claude = (stop: string, ...blocks: Step[][]): Step[] => [
  messagesAnswer[0] ?? '',
  ...blocks.flat(),
  event('message_delta', { delta: { stop_reason: stop }, usage: { output_tokens: 5 } }),
  event('message_stop', {}),
];
const encrypted = { type: 'reasoning.encrypted', id: 'r', index: 0, data: 'b3BhcXVl' };

describe('the items of an answer whose client keeps the state', () => {
  it.each<[string, Record<string, unknown>, Step[], string, (rig: CoreRig) => unknown, unknown]>([
    [
      'reasoning before a text and before a call (responses)',
      { dialect: 'responses' },
      items(reasoning, message('I look.', 'commentary'), again, functionCall),
      'reasoning,message,reasoning,function_call',
      (rig) =>
        lastSent(rig, 'input')
          .slice(1, 5)
          .map(({ type, phase }) => [type, phase]),
      [
        ['reasoning', undefined],
        ['message', 'commentary'],
        ['reasoning', undefined],
        ['function_call', undefined],
      ],
    ],
    [
      'reasoning before each of two texts (responses)',
      { dialect: 'responses' },
      items(reasoning, message('I look.', 'commentary'), again, message('Seen.', 'final_answer')),
      'reasoning,message,reasoning,message',
      (rig) =>
        lastSent(rig, 'input')
          .slice(1, 5)
          .map(({ type, phase }) => [type, phase]),
      [
        ['reasoning', undefined],
        ['message', 'commentary'],
        ['reasoning', undefined],
        ['message', 'final_answer'],
      ],
    ],
    [
      'thinking before a text and before a call (messages)',
      { dialect: 'messages' },
      claude('tool_use', think(0, 'b25l'), say(1, 'I look.'), think(2, 'dHdv'), look(3)),
      'reasoning,message,reasoning,function_call',
      (rig) => (asRecord(assistantSent(rig))['content'] as { type: string }[]).map(({ type }) => type),
      ['thinking', 'text', 'thinking', 'tool_use'],
    ],
    [
      'thinking before the last text (messages)',
      { dialect: 'messages' },
      claude('end_turn', think(0, 'b25l'), say(1, 'Seen.')),
      'reasoning,message',
      (rig) => (asRecord(assistantSent(rig))['content'] as { type: string }[]).map(({ type }) => type),
      ['thinking', 'text'],
    ],
    [
      'a signature that comes with its call, after a text (chat)',
      { type: 'gemini' },
      [chunk({ content: 'I look.' }), call({ extra_content: signature }), ...end],
      'message,reasoning,function_call',
      (rig) => valueAt(assistantSent(rig), ['tool_calls', 0, 'extra_content']),
      signature,
    ],
    [
      'a signature that comes after its call (chat)',
      { type: 'gemini' },
      [call(), chunk({ tool_calls: [{ index: 0, extra_content: signature }] }), ...end],
      'function_call,reasoning',
      (rig) => valueAt(assistantSent(rig), ['tool_calls', 0, 'extra_content']),
      signature,
    ],
    [
      'details that come after a text (chat)',
      {},
      [
        chunk({ reasoning: 'Hm.', reasoning_details: [{ type: 'reasoning.text', index: 1, text: 'Hm.' }] }),
        chunk({ content: 'I look.' }),
        chunk({ reasoning_details: [encrypted] }),
        call(),
        ...end,
      ],
      'reasoning,message,reasoning,function_call',
      (rig) => (asRecord(assistantSent(rig))['reasoning_details'] as unknown[]).at(-1),
      encrypted,
    ],
  ])('keep their order: %s', async (_name, row, steps, order, found, wanted) => {
    const rig = new CoreRig({ channels: [row] }).upstream({ steps });
    const path = '/v1/responses';
    const body = {
      model: 'm',
      input: [{ role: 'user', content: 'hi' }],
      tools: [{ type: 'function', name: 'look', parameters }],
      include: ['reasoning.encrypted_content'],
      stream: true,
    };
    const { text } = await rig.post(body, { path });
    const last = asRecord(frames(text.replaceAll(/^event: .*\n/gm, '')).at(-1))['response'];
    const output = asRecord(last)['output'] as Record<string, unknown>[];
    expect(output.map(({ type }) => type).join()).toBe(order);
    const called = output.some(({ type }) => type === 'function_call');
    const next = called
      ? { type: 'function_call_output', call_id: id, output: 'seen' }
      : { role: 'user', content: 'Go on.' };
    const older = output.toSorted(
      (one, other) => Number(one['type'] === 'reasoning') - Number(other['type'] === 'reasoning'),
    );
    for (const list of [output, older]) {
      const answer = await rig.post({ ...body, input: [...body.input, ...list, next] }, { path });
      expect([answer.status, answer.headers['x-relay-dropped']]).toEqual([200, undefined]);
      expect(found(rig)).toEqual(wanted);
    }
  });
});

it.each(['compaction', 'compaction_summary', 'context_compaction'])(
  "another provider's %s is left out of the call and named",
  async (type) => {
    const rig = new CoreRig().upstream({ steps: hello });
    const sealed = { type, id: 'cmp_1', encrypted_content: 'gAAAAABfernet' };
    const input = [{ role: 'user', content: 'hi' }, sealed, { role: 'user', content: 'Go on.' }];
    const answer = await rig.post({ model: 'm', input }, { path: '/v1/responses' });
    expect([answer.status, answer.headers['x-relay-dropped']]).toEqual([200, 'reasoning']);
    expect(lastSent(rig, 'messages').map(({ content }) => content)).toEqual(['hi', 'Go on.']);
  },
);
