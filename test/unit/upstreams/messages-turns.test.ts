import { describe, expect, it } from 'vitest';
import { type RequestSettings } from '../../../shared/upstreams/dialect.ts';
import { CallIds } from '../../../shared/upstreams/call-ids.ts';
import { buildMessagesBody } from '../../../shared/upstreams/dialects/messages/request.ts';
import type { ChatMessage, ChatRequest } from '../../../shared/wire/canonical-call.ts';
import type { JsonRecord } from '../../../shared/wire/json.ts';
import type { StatePart } from '../../../shared/wire/turn-state.ts';
import { callIds, chatCall, settingsWith } from '../../support/dialect-parts.ts';

interface SentTurns {
  system?: JsonRecord[];
  tools?: JsonRecord[];
  messages: { role: string; content: JsonRecord[] }[];
}

const send = (messages: object[], more: Partial<RequestSettings> = {}, request: object = {}): SentTurns =>
  buildMessagesBody(chatCall({ model: 'm', messages, ...request } as ChatRequest), settingsWith(more))
    .body as unknown as SentTurns;
const user = (content: unknown): object => ({ role: 'user', content });
const text = (value: string): JsonRecord => ({ type: 'text', text: value });
const turn = (role: string, ...content: JsonRecord[]): object => ({ role, content });
const call = (id: string, args = '{}', name = 'f'): object => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});
const calling = (...calls: object[]): object => ({ role: 'assistant', content: null, tool_calls: calls });
const result = (id: string, content: unknown = 'r'): object => ({ role: 'tool', tool_call_id: id, content });
const use = (id: string, input: object = {}, name = 'f'): JsonRecord => ({
  type: 'tool_use',
  id,
  name,
  input,
});
const filler = turn('user', text('Continue.'));
const image = (url: string): object => ({ type: 'image_url', image_url: { url } });

describe('turns', () => {
  it.each<[string, object[], object[]]>([
    [
      'of the assistant in a row stay separate',
      [user('a'), { role: 'assistant', content: 'b' }, { role: 'assistant', content: 'c' }, user('d')],
      [
        turn('user', text('a')),
        turn('assistant', text('b')),
        filler,
        turn('assistant', text('c')),
        turn('user', text('d')),
      ],
    ],
    [
      'of the assistant at the end are answered',
      [user('a'), { role: 'assistant', content: 'b' }],
      [turn('user', text('a')), turn('assistant', text('b')), filler],
    ],
    [
      "begin with the user's",
      [{ role: 'assistant', content: 'b' }, user('c')],
      [filler, turn('assistant', text('b')), turn('user', text('c'))],
    ],
    [
      'hold arguments as objects',
      [
        user('a'),
        calling(call('1', '{"a":1}'), call('2', '{"a"'), call('3', '[1]'), call('4', '')),
        user('b'),
      ],
      [
        turn('user', text('a')),
        turn(
          'assistant',
          use('1', { a: 1 }),
          use('2', { input: '{"a"' }),
          use('3', { input: [1] }),
          use('4'),
        ),
        turn('user', text('b')),
      ],
    ],
    [
      'hold calls of free text as their wrapper',
      [user('a'), calling({ id: '1', type: 'custom', custom: { name: 'p', input: 'x y' } }), user('b')],
      [turn('user', text('a')), turn('assistant', use('1', { input: 'x y' }, 'p')), turn('user', text('b'))],
    ],
  ])('%s', (_case, messages, expected) => {
    expect(send(messages).messages).toEqual(expected);
  });

  it('move the first instructions to system', () => {
    const sent = send([
      { role: 'system', content: 's' },
      { role: 'developer', content: [text('d'), text('')] },
    ]);
    expect(sent.system).toEqual([text('s'), text('d')]);
    expect(sent.messages).toEqual([filler]);
  });

  const png = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } };
  const pdf = (title?: string): object => ({
    type: 'document',
    source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0x' },
    ...(title && { title }),
  });
  it.each<[string, object, object]>([
    ['an inline image', image('data:image/png;base64,AAAA'), png],
    ['a PDF without its data URL', { type: 'file', file: { file_data: 'JVBERi0x' } }, pdf()],
  ])('contain %s', (_case, part, expected) => {
    expect(send([user([part])]).messages).toEqual([turn('user', expected as JsonRecord)]);
  });
});

describe('call ids', () => {
  const ids = (messages: object[], more: Partial<RequestSettings> = {}): unknown[] =>
    send(messages, more).messages.flatMap(({ content }) =>
      content.flatMap((block) => [block['id'], block['tool_use_id']].filter(Boolean)),
    );
  const loop = (id: string): object[] => [user('a'), calling(call(id)), result(id)];

  it("are the vendor's own if this channel issued them", () => {
    expect(ids(loop(callIds.showId('toolu_1', 0)))).toEqual(['toolu_1', 'toolu_1']);
    const elsewhere = new CallIds({ channel: 'another', requestId: 'r2' }).showId('toolu_1', 0);
    expect(ids(loop(elsewhere))).toEqual([elsewhere, elsewhere]);
  });

  it.each(['f:0', 'x'.repeat(65), 'a.b', 'ü'])('in another form are mapped, with their results: %s', (id) => {
    const [used, answered] = ids(loop(id));
    expect(used).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(answered).toBe(used);
  });

  it('that repeat are different calls', () => {
    const [first, , second, third] = ids([...loop('call_1'), ...loop('call_1')]);
    expect(first).toBe('call_1');
    expect(second).not.toBe(first);
    expect(third).toBe(second);
  });
});

describe('the state of a turn', () => {
  const thought = { type: 'thinking', thinking: 'Hm.', signature: 's', extra: { kept: true } };
  const hidden = { type: 'redacted_thinking', data: 'd' };
  const message = {
    role: 'assistant',
    content: 'first.second.',
    tool_calls: [call('1'), call('2')],
  } as ChatMessage;
  const sendState = (
    parts: StatePart[],
    more: Partial<RequestSettings> = {},
    own: object = message,
  ): unknown => {
    const states = new Map([[own as ChatMessage, parts]]);
    const sent = buildMessagesBody(
      chatCall({ model: 'm', messages: [user('a'), own, result('1'), result('2')] } as ChatRequest),
      settingsWith({ states, ...more }),
    );
    return (sent.body as unknown as SentTurns).messages[1]?.content;
  };
  const layout: StatePart[] = [
    { opaque: thought },
    { text: 6 },
    { call: 0 },
    { opaque: hidden },
    { text: 7 },
    { call: 1 },
  ];

  it('is sent unchanged, in its place', () => {
    expect(JSON.stringify(sendState(layout))).toBe(
      JSON.stringify([thought, text('first.'), use('1'), hidden, text('second.'), use('2')]),
    );
  });

  it.each<[string, object]>([
    ['the text', { ...message, content: 'first.' }],
    ['a call', { ...message, tool_calls: [call('1')] }],
  ])('comes first when the client changed %s', (_case, changed) => {
    const content = sendState(layout, {}, changed) as JsonRecord[];
    expect(content.slice(0, 3)).toEqual([thought, hidden, text((changed as { content: string }).content)]);
  });

  it('is dropped when the upstream rejected it', () => {
    expect(sendState(layout, { omissions: new Set(['state']) })).toEqual([
      text('first.second.'),
      use('1'),
      use('2'),
    ]);
    const states = new Map([[message, layout]]);
    const asked = chatCall({ model: 'm', messages: [message] });
    expect(buildMessagesBody(asked, settingsWith({ states, omissions: new Set(['state']) })).dropped).toEqual(
      ['reasoning'],
    );
  });
});

describe('cache breakpoints', () => {
  const long = 'word '.repeat(2000);
  const tools = [
    { type: 'function', function: { name: 'f' } },
    { type: 'function', function: { name: 'g' } },
  ];
  const ephemeral = { type: 'ephemeral' };
  const system = { role: 'system', content: long };
  /** The marked places: `tools.1`, `0.0`. */
  const marks = ({ tools: sentTools = [], system: sentSystem = [], messages }: SentTurns): string[] =>
    [
      ...sentTools.map((tool, index) => [`tools.${index}`, tool] as const),
      ...sentSystem.map((block, index) => [`system.${index}`, block] as const),
      ...messages.flatMap(({ content }, at) =>
        content.map((block, index) => [`${at}.${index}`, block] as const),
      ),
    ].flatMap(([place, { cache_control: mark }]) => (mark ? [place] : []));
  const results = (count: number): object[] => [
    calling(...Array.from({ length: count }, (_, index) => call(`c${index}`))),
    ...Array.from({ length: count }, (_, index) => result(`c${index}`)),
  ];

  it.each<[string, object[], object, string[]]>([
    ['are omitted from a call without follow-up', [system, user('a')], {}, []],
    ['are omitted from a short prompt', [user('a')], { tools }, []],
    [
      'end tools, system and the user turn',
      [system, user('a'), user('b')],
      { tools },
      ['tools.1', 'system.0', '0.1'],
    ],
    ['are added for a cache key', [system, user('a')], { prompt_cache_key: 'k' }, ['system.0', '0.0']],
    ['end the two last user turns', [user(long), ...results(1), ...results(2)], {}, ['2.0', '4.1']],
    [
      'have an anchor in a turn that is longer than the vendor looks back',
      [system, user('a'), ...results(25)],
      { tools },
      ['system.0', '0.0', '2.19', '2.24'],
    ],
  ])('%s', (_case, messages, request, expected) => {
    expect(marks(send(messages, {}, request))).toEqual(expected);
  });

  it.each([
    ['claude-opus-5', 512],
    ['claude-opus-4-7', 2048],
    ['claude-haiku-4-5', 4096],
    ['another', 1024],
  ])("require the minimum prompt of the model's cache: %s", (model, tokens) => {
    const prompt = (length: number): object[] => [user('x'.repeat(length))];
    expect(marks(send(prompt(tokens * 4 - 100), { model }, { prompt_cache_key: 'k' }))).toEqual([]);
    expect(marks(send(prompt(tokens * 4 + 4), { model }, { prompt_cache_key: 'k' }))).toEqual(['0.0']);
  });

  it('of the client are sent, and no others', () => {
    const hour = { type: 'ephemeral', ttl: '1h' };
    const messages = [
      { role: 'system', content: [{ ...text(long), cache_control: hour }] },
      user('a'),
      { role: 'assistant', content: [{ ...text('b'), cache_control: ephemeral }] },
      { ...user('c'), cache_control: { ...ephemeral, own: 1 } },
    ];
    const marked = { ...tools[1], cache_control: ephemeral };
    const sent = send(messages, {}, { tools: [tools[0], marked] });
    expect(marks(sent)).toEqual(['tools.1', 'system.0', '1.0', '2.0']);
    expect(sent.system?.[0]?.['cache_control']).toEqual(hour);
    expect(sent.messages[2]?.content[0]?.['cache_control']).toEqual(ephemeral);
  });
});
