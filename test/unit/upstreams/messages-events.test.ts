import { describe, expect, it } from 'vitest';
import { ChunksToCompletion } from '../../../shared/endpoints/chat/fold.ts';
import { MessagesReader } from '../../../shared/upstreams/dialects/messages/events.ts';
import { UpstreamFailure } from '../../../shared/upstreams/exchange.ts';
import type { ChatChunk } from '../../../shared/wire/chat-response.ts';
import { readerContext } from '../../support/dialect-parts.ts';

type Json = Record<string, unknown>;

const wrapping = readerContext({ sent: { body: {}, dropped: [], wrappedTools: new Set(['patch']) } });

/** Events of one stream as the vendor sends them. */
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

describe('the stop reason', () => {
  it.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'stop'],
    ['tool_use', 'stop'],
    ['a new one', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'content_filter'],
  ])('%s becomes %s', (reason, expected) => {
    expect(message([begin, textBlock(), said('x'), stop(0), finish(reason), end])).toMatchObject({
      content: 'x',
      finish_reason: expected,
    });
  });

  it.each([
    ['end_turn', 'tool_calls'],
    ['max_tokens', 'length'],
  ])('%s becomes %s after a call', (reason, expected) => {
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
  ])('%s', (_case, events, expected) => {
    expect(message(events)).toMatchObject(expected);
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
    ['with input in pieces', [start(use(longId('a')), 0), json('{"a":'), json('2}'), stop(0)], '{"a":2}'],
    ['that start twice', [start(use(longId('a')), 0), start(use(longId('a')), 0), json('{}'), stop(0)], '{}'],
    ['that never close', [start(use(longId('a')), 0)], '{}'],
  ])('%s are one call', (_case, events, args) => {
    expect(calls(events)).toEqual([call(0, longId('a'), args)]);
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
  ])('without an end and with half of their arguments are cut: %s, %s', (name, reason) => {
    const finished = reason === undefined ? [] : [finish(reason)];
    const events = [begin, start(use('a', name), 0), json('{"a":'), ...finished, end];
    expect(() => readEvents(events, wrapping)).toThrow('upstream failed: cut');
  });

  it('without an end are shown if their arguments are complete, or the answer reports that it was cut', () => {
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
  ])('of free text are read from any wrapper: %s', (args, input) => {
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

describe('the state of a Messages answer', () => {
  const state = (events: unknown[]): unknown => readEvents([begin, ...events, end]).reader.report().state;
  it('omits thinking that was cut before its signature, except from vendors that sign nothing', () => {
    expect(state([thought('t'), finish('max_tokens')])).toBeUndefined();
    expect(state([thought('t'), stop(0)])).toEqual([{ opaque: { type: 'thinking', thinking: 't' } }]);
  });
});

describe('an invalid answer', () => {
  const chatChunk = {
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta: { content: 'x' }, finish_reason: 'stop' }],
  };
  it.each<[string, unknown[], string]>([
    ['from another dialect is junk', [chatChunk], 'junk'],
    ['without events is junk', [], 'junk'],
    ['with only an end is junk', [end], 'junk'],
    ['with only a start is cut', [begin], 'cut'],
    ['without content and without a reason is empty', [begin, end], 'empty'],
    ['that breaks off is cut', [begin, said('a')], 'cut'],
  ])('%s', (_case, events, kind) => {
    expect(() => readEvents(events)).toThrow(`upstream failed: ${kind}`);
  });

  it('is not an error once the answer is complete', () => {
    expect(
      message([begin, said('a'), stop(0), finish('end_turn'), { type: 'error', error: {} }]),
    ).toMatchObject({ content: 'a' });
  });

  it('ends normally when the connection breaks after its end, and fails before', () => {
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
  'eight complete blocks of thinking with 7 MB of %s are too large',
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
  it('includes the service tier, if it is one short word', () => {
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
    ['is undefined without a count', [{}, null, { service_tier: 'x' }], undefined],
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
  ])('%s', (_case, values, expected) => {
    expect(usage(...values)).toEqual(expected);
  });
});
