import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { buildResponsesBody } from '../../../shared/upstreams/dialects/responses/request.ts';
import { type RequestSettings } from '../../../shared/upstreams/dialect.ts';
import { defaultQuirks } from '../../../shared/upstreams/quirks.ts';
import type { ChatMessage, ChatToolCall } from '../../../shared/wire/canonical-call.ts';
import type { StatePart } from '../../../shared/wire/turn-state.ts';
import { callIds, chatCall, settingsWith } from '../../support/dialect-parts.ts';

const itemsOf = (messages: ChatMessage[], more: Partial<RequestSettings> = {}): unknown =>
  buildResponsesBody(chatCall({ model: 'm', messages }), settingsWith(more)).body['input'];
const user = (text: string): ChatMessage => ({ role: 'user', content: text });
const call = (id: string, name = 'f', text = '{}'): ChatToolCall => ({
  id,
  type: 'function',
  function: { name, arguments: text },
});
const customCall = (id: string): ChatToolCall => ({ id, type: 'custom', custom: { name: 'c', input: 'x' } });
const assistant = (content: string | null, ...calls: ChatToolCall[]): ChatMessage => ({
  role: 'assistant',
  content,
  ...(calls.length > 0 && { tool_calls: calls }),
});
const result = (id: string, content: ChatMessage['content'] = 'ok'): ChatMessage => ({
  role: 'tool',
  tool_call_id: id,
  content,
});
const sentUser = (text: string): object => ({
  type: 'message',
  role: 'user',
  content: [{ type: 'input_text', text }],
});
const sentText = (text: string, phase?: string): object => ({
  type: 'message',
  role: 'assistant',
  ...(phase !== undefined && { phase }),
  content: [{ type: 'output_text', text }],
});
const sentCall = (id: string): object => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' });
const reasoning = (id: string): { type: string } & Record<string, unknown> => ({
  id,
  type: 'reasoning',
  encrypted_content: `gAAA${id}`,
  summary: [],
});

describe('call ids', () => {
  const idsOf = (messages: ChatMessage[]): unknown[] =>
    (itemsOf(messages) as { call_id?: string }[]).flatMap(({ call_id: id }) => id ?? []);

  it('that the upstream used twice in one turn are sent as two, each with its result', () => {
    const [one = '', two = ''] = [0, 1].map((index) => callIds.showId('x', index));
    const turn = [assistant(null, call(one), call(two)), result(two), result(one)];
    expect(idsOf([user('a'), ...turn])).toEqual(['x', 'x_2', 'x_2', 'x']);
  });

  it('that the client used twice are sent as two', () => {
    const turn = [assistant(null, call('x'), customCall('x')), result('x'), result('x')];
    expect(idsOf(turn)).toEqual(['x', 'x_2', 'x', 'x_2']);
    expect(itemsOf(turn)).toMatchObject([
      {},
      {},
      { type: 'function_call_output' },
      { type: 'custom_tool_call_output' },
    ]);
  });
});

describe('the items of messages', () => {
  it.each<[string, ChatMessage[], object[]]>([
    [
      'custom calls and their results have items of their own',
      [assistant(null, customCall('call_1')), result('call_1')],
      [
        { type: 'custom_tool_call', call_id: 'call_1', name: 'c', input: 'x' },
        { type: 'custom_tool_call_output', call_id: 'call_1', output: 'ok' },
      ],
    ],
    [
      'a refusal is a separate part',
      [{ role: 'assistant', content: null, refusal: 'no' }],
      [{ type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] }],
    ],
    [
      'a phase that the client kept is sent',
      [{ ...assistant('t'), phase: 'commentary' }],
      [sentText('t', 'commentary')],
    ],
    [
      'a result without a call becomes a user message',
      [{ role: 'function', name: 'f', content: 'ok' }],
      [sentUser('ok')],
    ],
    ['empty arguments are an object', [assistant(null, call('call_1', 'f', ''))], [sentCall('call_1')]],
  ])('%s', (_case, messages, expected) => {
    expect(itemsOf(messages)).toEqual(expected);
  });

  it('have one system message at the beginning if the upstream requires that', () => {
    const messages: ChatMessage[] = [
      user('b'),
      { role: 'system', content: 'a' },
      { role: 'developer', content: 'c' },
    ];
    expect(itemsOf(messages, { quirks: { ...defaultQuirks, systemPosition: 'first' } })).toEqual([
      {
        type: 'message',
        role: 'system',
        content: [
          { type: 'input_text', text: 'a' },
          { type: 'input_text', text: 'c' },
        ],
      },
      sentUser('b'),
    ]);
  });

  it('of custom calls are functions if the upstream has no custom tools', () => {
    const quirks = { ...defaultQuirks, supportsCustomTools: false };
    expect(itemsOf([assistant(null, customCall('call_1')), result('call_1')], { quirks })).toEqual([
      { type: 'function_call', call_id: 'call_1', name: 'c', arguments: '{"input":"x"}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'ok' },
    ]);
  });
});

describe('a turn with its state', () => {
  const turn = assistant('ab', call('call_1'), call('call_2'));
  const send = (parts: StatePart[], message = turn, more: Partial<RequestSettings> = {}): unknown =>
    itemsOf([message], { states: new Map([[message, parts]]), ...more });
  const [one, two] = [reasoning('rs_1'), reasoning('rs_2')];

  it.each<[string, StatePart[], object[], ChatMessage?]>([
    [
      'has every part in its place',
      [
        { opaque: { item: one } },
        { call: 0 },
        { text: 1, phase: 'commentary' },
        { opaque: { item: two } },
        { call: 1 },
        { text: 1 },
      ],
      [one, sentCall('call_1'), sentText('a', 'commentary'), two, sentCall('call_2'), sentText('b')],
    ],
    [
      'has items at its end that the layout does not name',
      [{ opaque: { item: one } }, { call: 1 }],
      [one, sentCall('call_2'), sentText('ab'), sentCall('call_1')],
    ],
    [
      'has no reasoning before a call that is gone',
      [{ opaque: { item: one } }, { call: 5 }, { call: 0 }, { call: 1 }, { text: 2 }],
      [sentCall('call_1'), sentCall('call_2'), sentText('ab')],
    ],
    [
      'has no reasoning that nothing follows',
      [{ text: 2 }, { call: 0 }, { call: 1 }, { opaque: { item: one } }],
      [sentText('ab'), sentCall('call_1'), sentCall('call_2')],
    ],
    [
      'has a changed text completely',
      [{ text: 1 }, { opaque: { item: one } }, { call: 0 }, { text: 3 }, { call: 1 }],
      [sentText('ab'), one, sentCall('call_1'), sentCall('call_2')],
    ],
    [
      'has messages apart that the client joined with a line feed',
      [
        { text: 1, phase: 'commentary' },
        { text: 1, phase: 'final_answer' },
      ],
      [sentText('a', 'commentary'), sentText('b', 'final_answer')],
      assistant('a\nb'),
    ],
    [
      'has a compaction wherever it was',
      [{ opaque: { item: { type: 'compaction', encrypted_content: 'x' } } }, { text: 2 }],
      [{ type: 'compaction', encrypted_content: 'x' }, sentText('ab')],
      assistant('ab'),
    ],
  ])('%s', (_case, parts, expected, message = turn) => {
    expect(send(parts, message)).toEqual(expected);
  });

  it('that was rejected is sent without its encrypted items, which is reported', () => {
    const parts: StatePart[] = [
      { opaque: { item: one } },
      { text: 2, phase: 'commentary' },
      { call: 0 },
      { call: 1 },
    ];
    const settings = settingsWith({ states: new Map([[turn, parts]]), omissions: new Set(['state']) });
    const { body, dropped } = buildResponsesBody(chatCall({ model: 'm', messages: [turn] }), settings);
    expect(body['input']).toEqual([sentText('ab', 'commentary'), sentCall('call_1'), sentCall('call_2')]);
    expect(dropped).toEqual(['reasoning']);
  });

  it('that was rejected also loses encrypted data in the items that are sent in their places', () => {
    const said = { type: 'agent_reasoning', text: 'Hm.' };
    const after = new Map([[turn, [said, { type: 'agent_reasoning', encrypted_content: 'gAAAA' }]]]);
    const items = { after, instead: new Map(), tools: new Map(), effort: undefined, lost: [] };
    const call = { ...chatCall({ model: 'm', messages: [turn] }), form: 'responses', items } as const;
    const sent = buildResponsesBody(call, settingsWith({ omissions: new Set(['state']) })).body['input'];
    expect(sent).toEqual([sentText('ab'), sentCall('call_1'), sentCall('call_2'), said]);
  });
});

describe('the items of a conversation', () => {
  const id = fc.constantFrom('a', 'call_1', 'f:0', 'y'.repeat(80), callIds.showId('f:0', 0));
  const calls = fc.array(
    fc.oneof(
      id.map((each) => call(each)),
      id.map(customCall),
    ),
    { maxLength: 3 },
  );
  const opaque = fc.nat(5).map((n): StatePart => ({ opaque: { item: reasoning(`rs_${n}`) } }));
  const part: fc.Arbitrary<StatePart> = fc.oneof(
    opaque,
    fc.record({ text: fc.nat(4) }),
    fc.record({ call: fc.nat(3) }),
    fc.record({ text: fc.nat(4), phase: fc.constant('commentary') }),
  );
  const message: fc.Arbitrary<ChatMessage> = fc.oneof(
    fc.string().map(user),
    fc.record({ role: fc.constantFrom('system' as const, 'developer' as const), content: fc.string() }),
    fc.tuple(fc.option(fc.string({ maxLength: 4 })), calls).map(([text, made]) => assistant(text, ...made)),
    id.map((each) => result(each)),
  );
  const turns = fc.array(fc.tuple(message, fc.option(fc.array(part, { maxLength: 6 }), { nil: undefined })), {
    minLength: 1,
    maxLength: 12,
  });

  it('of every turn begin the items of the next turn', () => {
    fc.assert(
      fc.property(turns, fc.nat(11), (all, at) => {
        const states = new Map(all.flatMap(([each, parts]) => (parts ? [[each, parts] as const] : [])));
        const messages = all.map(([each]) => each);
        const earlier = JSON.stringify(itemsOf(messages.slice(0, at + 1), { states })).slice(0, -1);
        expect(JSON.stringify(itemsOf(messages, { states })).slice(0, earlier.length)).toBe(earlier);
      }),
    );
  });
});
