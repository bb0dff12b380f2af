import { describe, expect, it } from 'vitest';
import type { ReaderContext } from '../../../shared/upstreams/dialect.ts';
import { ChatReader } from '../../../shared/upstreams/dialects/chat/events.ts';
import { defaultQuirks } from '../../../shared/upstreams/quirks.ts';
import type { ChatChunk, ToolCallDelta } from '../../../shared/wire/chat-response.ts';
import { readerContext } from '../../support/dialect-parts.ts';

interface Answer {
  reader: ChatReader;
  chunks: ChatChunk[];
}

function read(events: object[], context: Partial<ReaderContext> = {}): Answer {
  const reader = new ChatReader(readerContext(context));
  const chunks = events.flatMap((value) => reader.push({ kind: 'value', value }));
  return { reader, chunks: [...chunks, ...reader.push({ kind: 'done' }), ...reader.end()] };
}
const delta = (said: object, finish: string | null = null, more: object = {}): object => ({
  choices: [{ index: 0, delta: said, finish_reason: finish, ...more }],
});
const deltasOf = ({ chunks }: Answer): object[] =>
  chunks.flatMap(({ choices }) => choices.map((each) => each.delta));
const callsOf = ({ chunks }: Answer): ToolCallDelta[] =>
  chunks.flatMap(({ choices }) => choices.flatMap((each) => each.delta.tool_calls ?? []));
const finishOf = ({ chunks }: Answer): unknown =>
  chunks.flatMap(({ choices }) => choices).findLast((each) => each.finish_reason)?.finish_reason;
const call = (id: string, text = '{"a":1}', more: object = {}): object => ({
  id,
  function: { name: 'f', arguments: text },
  ...more,
});

describe('an answer', () => {
  it('has the reported service tier if that is a word', () => {
    expect(read([{ ...delta({ content: 'x' }), service_tier: 'flex' }]).reader.report().serviceTier).toBe(
      'flex',
    );
    for (const tier of ['a b', 'auto', 'x'.repeat(33), 7])
      expect(
        read([{ ...delta({ content: 'x' }), service_tier: tier }]).reader.report().serviceTier,
      ).toBeUndefined();
  });

  it('has its reasoning extracted from tags once, if the row says so', () => {
    const events = ['<thi', 'nk>so', ' on</think>', 'hi'].map((content) => delta({ content }));
    const quirks = { ...defaultQuirks, usesThinkTags: true };
    const texts = (answer: Answer): string[] =>
      (['reasoning_content', 'content'] as const).map((field) =>
        deltasOf(answer)
          .map((each) => (each as Record<string, string>)[field] ?? '')
          .join(''),
      );
    expect(texts(read(events, { quirks }))).toEqual(['so on', 'hi']);
    expect(texts(read(events))).toEqual(['', '<think>so on</think>hi']);
    const mirrored = [
      delta({ reasoning_content: 'so', content: '<think>so' }),
      delta({ reasoning_content: ' on', content: ' on</think>' }),
      ...events.slice(3),
    ];
    expect(texts(read(mirrored, { quirks }))).toEqual(['so on', 'hi']);
    expect(texts(read(events.slice(0, 2), { quirks }))).toEqual(['so', '']);
  });
});

describe('a wrapped custom call in an answer', () => {
  const sent = { body: {}, dropped: [], wrappedTools: new Set(['f']) };
  it('is a custom call', () => {
    const answer = read([delta({ tool_calls: [call('x', '{"input":"hi"}')] }, 'tool_calls')], { sent });
    expect(callsOf(answer)).toMatchObject([{ type: 'custom', custom: { name: 'f', input: 'hi' } }]);
    expect(finishOf(answer)).toBe('tool_calls');
  });

  it.each([
    ['length', 'length'],
    ['tool_calls', 'stop'],
  ])('is dropped when it was cut, and the answer ends with %s -> %s', (reason, expected) => {
    const answer = read([delta({ tool_calls: [call('x', '{"input":"hi')] }, reason)], { sent });
    expect([callsOf(answer), finishOf(answer)]).toEqual([[], expected]);
  });
});

describe('an error in an answer', () => {
  it.each<[string, object, object]>([
    [
      'beside the choices',
      { error: { message: 'too long', code: 'context_length_exceeded', type: 'invalid_request_error' } },
      { code: 'context_length_exceeded' },
    ],
    [
      'sent without an envelope',
      { object: 'error', message: 'no', code: 40303 },
      { message: 'no', code: 40303 },
    ],
    [
      'by its type',
      { type: 'error', error: { type: 'overloaded_error', message: 'x' } },
      { type: 'overloaded_error' },
    ],
    ['in a choice', delta({ content: '' }, 'error', { error: { code: 502, message: 'x' } }), { code: 502 }],
    ['without a word', delta({}, 'error'), {}],
  ])('ends it with a readable error: %s', (_case, event, error) => {
    const thrown = expect.objectContaining({ name: 'ErrorInAnswer', error: expect.objectContaining(error) });
    expect(() => read([event])).toThrow(thrown);
    expect(() => read([delta({ content: 'x' }), event])).toThrow(thrown);
  });

  it('is ignored once every choice is finished', () => {
    expect(finishOf(read([delta({ content: 'x' }, 'stop'), { error: { message: 'late' } }]))).toBe('stop');
  });
});

describe('an answer that is too large to keep', () => {
  const part = 'x'.repeat(1024 * 1024);
  it.each<[string, (i: number) => object]>([
    ['text', () => delta({ content: part })],
    ['reasoning', () => delta({ reasoning: part })],
    [
      'arguments',
      () => delta({ tool_calls: [{ index: 0, id: 'x', function: { name: 'f', arguments: part } }] }),
    ],
    [
      'state of calls',
      () => delta({ tool_calls: [call('x', '', { index: 0, extra_content: { a: part } })] }),
    ],
    ['state of the turn', () => delta({ extra_content: { a: part } })],
    ['reasoning details', () => delta({ reasoning_details: [{ type: 'reasoning.encrypted', data: part }] })],
    ['log probabilities without text', () => delta({}, null, { logprobs: { content: [{ token: part }] } })],
  ])('fails: %s', (_case, event) => {
    expect(() => read([0, 1, 2].map(event))).not.toThrow();
    expect(() => read([0, 1, 2, 3, 4].map(event))).toThrow('too_large');
  });

  it.each([
    ['images', delta({ images: [{ type: 'image_url', image_url: { url: part } }] })],
    ['annotations', delta({ annotations: [{ url_citation: { url: part } }] })],
    [
      'log probabilities of text',
      delta({ content: 'x' }, null, { logprobs: { content: [{ token: part }] } }),
    ],
  ])('may have any size if it is only passed on: %s', (_case, event) => {
    expect(() => read(Array(40).fill(event))).not.toThrow();
  });
});
