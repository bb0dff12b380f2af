import { describe, expect, it } from 'vitest';
import { ChunksToCompletion } from '../../../shared/endpoints/chat/fold.ts';
import { MessagesReader } from '../../../shared/upstreams/dialects/messages/events.ts';
import { ErrorInAnswer, UpstreamFailure } from '../../../shared/upstreams/exchange.ts';
import type { ChatChunk } from '../../../shared/wire/chat-response.ts';
import { callIds, readerContext } from '../../support/dialect-parts.ts';

type Json = Record<string, unknown>;

const wrapping = readerContext({ sent: { body: {}, dropped: [], wrapped: new Set(['patch']) } });

/** Events of one stream, as the vendor sends them. */
function readEvents(
  values: unknown[],
  context = readerContext(),
): { chunks: ChatChunk[]; reader: MessagesReader } {
  const reader = new MessagesReader(context);
  const chunks = values.flatMap((value) => reader.push({ kind: 'value', value }));
  return { chunks: [...chunks, ...reader.end()], reader };
}

const message = (values: unknown[], context = readerContext()): Json => {
  const { choices } = whole(readEvents(values, context).chunks) as {
    choices: [{ message: Json; finish_reason: string }];
  };
  return { ...choices[0].message, finish_reason: choices[0].finish_reason };
};

function whole(chunks: ChatChunk[]): object {
  const fold = new ChunksToCompletion();
  for (const chunk of chunks) fold.push(chunk);
  return fold.completion();
}

const begin = {
  type: 'message_start',
  message: { role: 'assistant', usage: { input_tokens: 5, output_tokens: 1 } },
};
const start = (block: Json, index?: number): Json => ({
  type: 'content_block_start',
  index,
  content_block: block,
});
const delta = (value: Json, index?: number): Json => ({ type: 'content_block_delta', index, delta: value });
const said = (text: string, index = 0): Json => delta({ type: 'text_delta', text }, index);
const thought = (thinking: string, index = 0): Json => delta({ type: 'thinking_delta', thinking }, index);
const json = (partial: string, index = 0): Json =>
  delta({ type: 'input_json_delta', partial_json: partial }, index);
const stop = (index?: number): Json => ({ type: 'content_block_stop', index });
const finish = (reason: string): Json => ({
  type: 'message_delta',
  delta: { stop_reason: reason },
  usage: { output_tokens: 9 },
});
const end = { type: 'message_stop' };
const textBlock = (index = 0): Json => start({ type: 'text', text: '' }, index);
const use = (id: string, name = 'f', input: unknown = {}): Json => ({ type: 'tool_use', id, name, input });
const longId = (letter: string): string => `toolu_${letter.repeat(20)}`;

describe('the reason to stop', () => {
  it.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'stop'],
    ['tool_use', 'stop'],
    ['a new one', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'content_filter'],
  ])('%s is %s', (reason, expected) => {
    expect(message([begin, textBlock(), said('x'), stop(0), finish(reason), end])).toMatchObject({
      content: 'x',
      finish_reason: expected,
    });
  });

  it.each([
    ['end_turn', 'tool_calls'],
    ['max_tokens', 'length'],
  ])('%s is %s after a call', (reason, expected) => {
    expect(message([begin, start(use('a'), 0), stop(0), finish(reason), end])['finish_reason']).toBe(
      expected,
    );
  });
});

describe('blocks', () => {
  it.each<[string, unknown[], object]>([
    [
      'without a start are read',
      [begin, said('a'), thought('b', 1), end],
      { content: 'a', reasoning_content: 'b' },
    ],
    [
      'without an index are read',
      [begin, start({ type: 'text', text: 'a' }), delta({ type: 'text_delta', text: 'b' }), stop(), end],
      { content: 'ab' },
    ],
    [
      'that start twice are one',
      [begin, textBlock(), textBlock(), said('a'), stop(0), end],
      { content: 'a' },
    ],
    [
      'that use an index again are others',
      [begin, textBlock(), said('a'), start(use('x'), 0), json('{}'), stop(0), end],
      { content: 'a', finish_reason: 'tool_calls' },
    ],
    [
      'that change their kind in the middle are two',
      [begin, textBlock(), said('a'), thought('b'), said('c'), end],
      { content: 'ac', reasoning_content: 'b' },
    ],
    ['that end late are read', [begin, textBlock(), stop(0), said('a'), end], { content: 'a' }],
    [
      'that the upstream ran are left out',
      [
        begin,
        start({ type: 'server_tool_use', id: 's', name: 'n', input: {} }, 0),
        json('{}'),
        stop(0),
        said('a', 1),
        end,
      ],
      { content: 'a', tool_calls: null },
    ],
    [
      'of a call without a name are left out',
      [begin, json('{"a":1}', 3), said('a'), end],
      { content: 'a', tool_calls: null },
    ],
    [
      'that nobody knows are left out',
      [
        begin,
        { type: 'ping' },
        { type: 'later' },
        3,
        null,
        start({ type: 'later' }, 0),
        said('hidden'),
        delta({ type: 'later_delta' }, 0),
        said('a', 1),
        end,
      ],
      { content: 'a' },
    ],
  ])('%s', (_case, events, expected) => {
    expect(message(events)).toMatchObject(expected);
  });

  it('that never close end a stream without an end mark as cut', () => {
    const open = [begin, textBlock(), said('a'), finish('end_turn')];
    expect(() => readEvents(open)).toThrow('upstream failed: cut');
    expect(message([...open, end])).toMatchObject({ content: 'a' });
    expect(message([...open, stop(0)])).toMatchObject({ content: 'a' });
  });
});

describe('calls', () => {
  const calls = (events: unknown[], context = readerContext()): unknown =>
    message([begin, ...events, end], context)['tool_calls'];
  const call = (index: number, id: string, args: string): object => ({
    index,
    id,
    type: 'function',
    function: { name: 'f', arguments: args },
  });

  it.each<[string, unknown[], string]>([
    ['without input', [start(use(longId('a')), 0), json(''), stop(0)], '{}'],
    ['with all input at the start', [start(use(longId('a'), 'f', { a: 1 }), 0), stop(0)], '{"a":1}'],
    [
      'with all input at the start and again in pieces',
      [start(use(longId('a'), 'f', { a: 1 }), 0), json('{"a"'), json(':1}'), stop(0)],
      '{"a":1}',
    ],
    ['with input in pieces', [start(use(longId('a')), 0), json('{"a":'), json('2}'), stop(0)], '{"a":2}'],
    ['that start twice', [start(use(longId('a')), 0), start(use(longId('a')), 0), json('{}'), stop(0)], '{}'],
    ['that never close', [start(use(longId('a')), 0)], '{}'],
  ])('%s are one call', (_case, events, args) => {
    expect(calls(events)).toEqual([call(0, longId('a'), args)]);
  });

  it('show unique ids, whatever the upstream repeats', () => {
    const twice = [start(use('f:0'), 0), stop(0), start(use('f:0'), 1), stop(1)];
    expect(calls(twice)).toEqual([
      call(0, callIds.show('f:0', 0), '{}'),
      call(1, callIds.show('f:0', 1), '{}'),
    ]);
    const long = [start(use(longId('a')), 0), stop(0), start(use(longId('a')), 1), stop(1)];
    expect(calls(long)).toEqual([call(0, longId('a'), '{}'), call(1, callIds.show(undefined, 1), '{}')]);
  });

  it('of free text come in one piece', () => {
    const patch = start(use(longId('p'), 'patch'), 0);
    const { chunks, reader } = readEvents(
      [
        begin,
        thought('t'),
        patch,
        json('{"input":"a'),
        json('\\nb"}'),
        stop(0),
        start(use(longId('b')), 1),
        stop(1),
        finish('tool_use'),
        end,
      ],
      wrapping,
    );
    const deltas = chunks.flatMap(({ choices }) =>
      choices.flatMap((choice) => choice.delta.tool_calls ?? []),
    );
    expect(deltas[0]).toEqual({
      index: 0,
      id: longId('p'),
      type: 'custom',
      custom: { name: 'patch', input: 'a\nb' },
    });
    expect(deltas[1]).toMatchObject({ index: 1, id: longId('b') });
    expect(reader.finishedChoices).toBe(1);
  });

  it.each([
    ['f', 'tool_use'],
    ['f', 'end_turn'],
    ['f', undefined],
    ['patch', 'tool_use'],
  ])('without end and with half of its arguments is cut: %s, %s', (name, reason) => {
    const finished = reason === undefined ? [] : [finish(reason)];
    const events = [begin, start(use('a', name), 0), json('{"a":'), ...finished, end];
    expect(() => readEvents(events, wrapping)).toThrow('upstream failed: cut');
  });

  it('without end are shown where their arguments are whole, or the answer says that it was cut', () => {
    const called = (args: string, reason: string): Json =>
      message([begin, start(use('a'), 0), json(args), finish(reason), end]);
    expect(called('{"a":1}', 'tool_use')).toMatchObject({
      finish_reason: 'tool_calls',
      tool_calls: [{ function: { arguments: '{"a":1}' } }],
    });
    expect(called('{"a":', 'max_tokens')).toMatchObject({
      finish_reason: 'length',
      tool_calls: [{ function: { arguments: '{"a":' } }],
    });
  });

  it.each([
    ['{"patch":"a"}', 'a'],
    ['"a"', 'a'],
    ['a', 'a'],
    ['{"input":3}', '{"input":3}'],
    ['', ''],
  ])('of free text are read in whatever wrapper: %s', (args, input) => {
    const block = start(use('p', 'patch'), 0);
    const { tool_calls: calls } = message(
      [begin, block, json(args), stop(0), finish('tool_use'), end],
      wrapping,
    );
    expect(calls).toMatchObject([{ type: 'custom', custom: { name: 'patch', input } }]);
  });

  it.each(['{"input":"a', '{"input":3}', ''])('of free text that are cut are never shown: %s', (args) => {
    const events = [begin, start(use(longId('p'), 'patch'), 0), json(args), finish('max_tokens'), end];
    expect(message(events, wrapping)).toMatchObject({ tool_calls: null, finish_reason: 'length' });
  });
});

describe('state', () => {
  const state = (events: unknown[]): unknown => readEvents([begin, ...events, end]).reader.report().state;
  const signature = (value: string, index = 0): Json =>
    delta({ type: 'signature_delta', signature: value }, index);

  it('is none without thinking', () => {
    expect(state([textBlock(), said('a'), stop(0)])).toBeUndefined();
  });

  it('keeps thinking byte for byte, even without text, with all that the vendor put into it', () => {
    const parts = state([
      start({ type: 'thinking', thinking: '', signature: '', later: 1 }, 0),
      signature('ab'),
      signature('c'),
      stop(0),
      start({ type: 'redacted_thinking', data: 'd' }, 1),
      stop(1),
    ]);
    expect(JSON.stringify(parts)).toBe(
      '[{"opaque":{"type":"thinking","thinking":"","signature":"abc","later":1}},{"opaque":{"type":"redacted_thinking","data":"d"}}]',
    );
  });

  it('has the order and the lengths of all parts', () => {
    const parts = state([
      thought('t'),
      signature('s'),
      stop(0),
      said('é👋', 1),
      stop(1),
      start(use('x'), 2),
      stop(2),
      thought('u', 3),
      signature('v', 3),
      stop(3),
      start(use('y'), 4),
      stop(4),
    ]);
    expect(parts).toEqual([
      { opaque: { type: 'thinking', thinking: 't', signature: 's' } },
      { text: 3 },
      { call: 0 },
      { opaque: { type: 'thinking', thinking: 'u', signature: 'v' } },
      { call: 1 },
    ]);
  });

  it('leaves out thinking that was cut before its signature, and keeps that of vendors that sign nothing', () => {
    expect(state([thought('t'), finish('max_tokens')])).toBeUndefined();
    expect(state([thought('t'), stop(0)])).toEqual([{ opaque: { type: 'thinking', thinking: 't' } }]);
  });
});

describe('an answer that is none', () => {
  const chatChunk = {
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: { content: 'x' }, finish_reason: 'stop' }],
  };
  it.each<[string, unknown[], string]>([
    ['of another dialect is junk', [chatChunk], 'junk'],
    ['of nothing is junk', [], 'junk'],
    ['of an end alone is junk', [end], 'junk'],
    ['of a start alone is cut', [begin], 'cut'],
    ['without content and without a reason is empty', [begin, end], 'empty'],
    ['that breaks off is cut', [begin, said('a')], 'cut'],
  ])('%s', (_case, events, kind) => {
    expect(() => readEvents(events)).toThrow(`upstream failed: ${kind}`);
  });

  it('passes by chunks of another dialect in the middle', () => {
    expect(message([begin, said('a'), chatChunk, said('b'), end])).toMatchObject({ content: 'ab' });
  });

  it('is an error with what the machine can read of it', () => {
    const error = { type: 'overloaded_error', message: 'Overloaded' };
    expect(() => readEvents([begin, said('a'), { type: 'error', error }])).toThrow(
      expect.objectContaining({
        name: 'ErrorInAnswer',
        error: { ...error, code: undefined, param: undefined },
      }),
    );
    expect(() => readEvents([{ type: 'error', error }])).toThrow(ErrorInAnswer);
  });

  it('is no error once the answer is whole', () => {
    expect(
      message([begin, said('a'), stop(0), finish('end_turn'), { type: 'error', error: {} }]),
    ).toMatchObject({ content: 'a' });
  });

  it('ends normally when the connection breaks after its end, and not before', () => {
    const reader = new MessagesReader(readerContext());
    const push = (value: unknown): ChatChunk[] => reader.push({ kind: 'value', value });
    [begin, said('a')].forEach(push);
    expect(() => reader.fail(new UpstreamFailure('reset'))).toThrow('reset');
    [stop(0), finish('end_turn')].forEach(push);
    expect(reader.fail(new UpstreamFailure('reset')).at(-1)?.choices[0]?.finish_reason).toBe('stop');
  });

  it.each<[string, (at: number) => unknown]>([
    ['thinking', () => thought('x'.repeat(1e6))],
    ['a signature', () => delta({ type: 'signature_delta', signature: 'x'.repeat(1e6) }, 0)],
    ['arguments', (at) => (at === 0 ? start(use('a'), 0) : json('x'.repeat(1e6)))],
    [
      'arguments of a call of free text',
      (at) => (at === 0 ? start(use('a', 'patch'), 0) : json('x'.repeat(1e6))),
    ],
    ['hidden thinking', (at) => start({ type: 'redacted_thinking', data: 'x'.repeat(1e6) + at }, at)],
    [
      'blocks',
      (at) =>
        Array.from({ length: 1000 }, (_, index) => start({ type: 'text', text: '' }, at * 1000 + index)),
    ],
    [
      'calls',
      (at) => Array.from({ length: at < 4 ? 300 : 0 }, (_, index) => start(use('a'), at * 1000 + index)),
    ],
    ['text with ids', (at) => start({ type: 'text', text: '', id: 'x'.repeat(1e6) + at }, at)],
  ])('is too large with 100 MB of %s', (_case, event) => {
    const reader = new MessagesReader(wrapping);
    const push = (at: number): unknown =>
      [event(at)].flat().map((value) => reader.push({ kind: 'value', value }));
    expect(() => Array.from({ length: 100 }, (_, at) => push(at))).toThrow('upstream failed: too_large');
  });
});

it.each(['thinking', 'signature', 'data', 'later'])(
  'eight whole blocks of thinking with 7 MB of %s are too large',
  (field) => {
    const blocks = Array.from({ length: 8 }, (_, at) =>
      start({ type: 'thinking', thinking: 't', [field]: 'x'.repeat(7e6) }, at),
    );
    expect(() => readEvents([begin, ...blocks, end])).toThrow('upstream failed: too_large');
  },
);

describe('usage', () => {
  const usage = (...values: unknown[]): unknown => {
    const events = values.map((value) => ({ type: 'message_delta', delta: {}, usage: value }));
    return readEvents([...events, said('a'), end]).reader.report().usage;
  };
  it('says the service tier, if it is one short word', () => {
    const tierOf = (tier: unknown) =>
      readEvents([
        { type: 'message_delta', delta: {}, usage: { service_tier: tier } },
        said('a'),
        end,
      ]).reader.report().serviceTier;
    expect(['priority', 'a b', 'x'.repeat(33), 7].map(tierOf)).toEqual([
      'priority',
      undefined,
      undefined,
      undefined,
    ]);
  });
  it.each<[string, unknown[], object | undefined]>([
    ['is none without a count', [{}, null, { service_tier: 'x' }], undefined],
    [
      'counts what was read and written as prompt',
      [{ input_tokens: 1, cache_read_input_tokens: 20, cache_creation_input_tokens: 300, output_tokens: 4 }],
      { input: 321, output: 4, cached: 20, written: 300 },
    ],
    [
      'tells lifetimes apart',
      [
        {
          input_tokens: 1,
          cache_creation_input_tokens: 300,
          cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
        },
      ],
      { input: 301, written: 300, writtenForHour: 200 },
    ],
    [
      'says nothing of writes where the vendor does not',
      [{ input_tokens: 1, output_tokens: 2 }],
      { input: 1, output: 2 },
    ],
    [
      'takes no zero for a count, and the larger output',
      [
        { input_tokens: 9, cache_read_input_tokens: 5, output_tokens: 1 },
        { input_tokens: 0, cache_read_input_tokens: 5, output_tokens: 7 },
      ],
      { input: 14, output: 7, cached: 5 },
    ],
    [
      'has the tokens of thinking',
      [{ input_tokens: 1, output_tokens: 9, output_tokens_details: { thinking_tokens: 4 } }],
      { input: 1, output: 9, reasoning: 4 },
    ],
  ])('%s', (_case, values, expected) => {
    expect(usage(...values)).toEqual(expected);
  });
});
