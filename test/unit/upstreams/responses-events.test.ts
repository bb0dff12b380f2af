import { describe, expect, it } from 'vitest';
import { callIds } from '../../support/dialect-parts.ts';
import {
  type Value,
  type Answer,
  push,
  readerOf,
  read,
  pieceText,
  nothing,
  callA,
  callB,
  delta,
  argumentsDelta,
  added,
  done,
  message,
  called,
  completed,
  incomplete,
  at,
} from '../../support/responses-events.ts';

describe('unusual content of a Responses upstream', () => {
  const twoCalls = [`${callA} f {"a":1}`, `${callB} f {"a":1}`];
  it.each<[string, Value[], Partial<Answer>]>([
    ['only a complete text', [done(message('x')), completed()], { content: 'x' }],
    [
      'one id for two items',
      [
        delta('x', at(0, 'm')),
        delta('x', at(1, 'm')),
        completed(message('x', { id: 'm' }), message('x', { id: 'm' })),
      ],
      { content: 'xx' },
    ],
    [
      'one index for two messages at a time',
      [
        added(message('', { id: 'm' }), at(0)),
        added(message('', { id: 'n' }), at(0)),
        delta('x', at(0, 'm')),
        delta('x', at(0, 'n')),
        { type: 'response.output_text.done', text: 'xy', ...at(0, 'm') },
        { type: 'response.output_text.done', text: 'xz', ...at(0, 'n') },
        completed(),
      ],
      { content: 'xxyz' },
    ],
    [
      'one index for two calls',
      [
        added(called(callA, '', { id: 'a' }), at(0)),
        added(called(callB, '', { id: 'b' }), at(0)),
        argumentsDelta('{"a"', at(0, 'a')),
        argumentsDelta('{"a"', at(0, 'b')),
        argumentsDelta(':1}', at(0, 'a')),
        argumentsDelta(':1}', at(0, 'b')),
        completed(called(callA, '{"a":1}', { id: 'a' }), called(callB, '{"a":1}', { id: 'b' })),
      ],
      { calls: twoCalls, finish: 'tool_calls' },
    ],
    [
      'gaps between indexes that the list does not have',
      [
        delta('x', at(2, 'm')),
        added(called(callA, '', { id: 'a' }), at(5)),
        argumentsDelta('{"a":1}', at(5, 'a')),
        completed(message('x', { id: 'n' }), called(callA, '{"a":1}', { id: 'a' }), called(callB, '{"a":1}')),
      ],
      { content: 'x', calls: twoCalls, finish: 'tool_calls' },
    ],
    [
      'a name that arrives last',
      [
        argumentsDelta('{"a"', at(0, 'a')),
        argumentsDelta(':1}', at(0, 'a')),
        done(called(callA, '{"a":1}', { id: 'a' }), at(0)),
        completed(),
      ],
      { calls: [`${callA} f {"a":1}`], finish: 'tool_calls' },
    ],
    [
      'one call id for two calls',
      [done(called(callA, '{"a":1}'), at(0)), done(called(callA, '{"a":1}'), at(1)), completed()],
      {
        calls: [`${callA} f {"a":1}`, `${callIds.showId(undefined, 1)} f {"a":1}`],
        finish: 'tool_calls',
      },
    ],
    [
      'empty arguments, said three times',
      [
        added(called(callA, '', { id: 'a' }), at(0)),
        done(called(callA, '', { id: 'a' }), at(0)),
        completed(called(callA, '', { id: 'a' })),
      ],
      { calls: [`${callA} f {}`], finish: 'tool_calls' },
    ],
    [
      'a call that never ends',
      [added(called(callA, '', { id: 'a' }), at(0)), completed()],
      { calls: [`${callA} f {}`], finish: 'tool_calls' },
    ],
    [
      'two parts of one message, and a part that only the complete item has',
      [
        delta('a', { ...at(0, 'm'), content_index: 0 }),
        delta('b', { ...at(0, 'm'), content_index: 1 }),
        done(
          {
            type: 'message',
            id: 'm',
            content: ['a', 'b', 'c'].map((text) => ({ type: 'output_text', text })),
          },
          at(0),
        ),
        completed(),
      ],
      { content: 'abc' },
    ],
    [
      'reasoning as a summary and as text',
      [
        { type: 'response.reasoning_summary_text.delta', delta: 'short', summary_index: 0, ...at(0, 'r') },
        { type: 'response.reasoning_text.delta', delta: 'long', content_index: 0, ...at(0, 'r') },
        {
          type: 'response.reasoning_summary_part.done',
          part: { type: 'summary_text', text: 'short' },
          summary_index: 0,
          ...at(0, 'r'),
        },
        done(
          {
            type: 'reasoning',
            id: 'r',
            summary: [
              { type: 'summary_text', text: 'short' },
              { type: 'summary_text', text: 'more' },
            ],
          },
          at(0),
        ),
        completed(),
      ],
      { reasoning: 'short\n\nmore' },
    ],
    [
      'a phase that is known only at the end of a text in one piece',
      [done(message('x', { phase: 'final_answer' }), at(0)), completed()],
      { content: 'x', phases: ['final_answer'] },
    ],
    ['a limit', [delta('x'), incomplete('max_output_tokens')], { content: 'x', finish: 'length' }],
    ['a filter', [delta('x'), incomplete('content_filter')], { content: 'x', finish: 'content_filter' }],
    [
      'more after its end mark',
      [delta('x'), completed(), delta('y'), { type: 'error', message: 'late' }],
      { content: 'x' },
    ],
  ])('is shown once: %s', (_case, values, expected) => {
    expect(read(values)).toEqual({ ...nothing, ...expected });
  });

  it('is read as images if an item is an image', () => {
    const image = { type: 'image_generation_call', id: 'ig', result: 'AAAA', output_format: 'webp' };
    const chunks = push(readerOf(), [done(image, at(0)), completed(image)]);
    expect(chunks.flatMap(({ choices }) => choices.flatMap(({ delta: { images } }) => images ?? []))).toEqual(
      [{ type: 'image_url', image_url: { url: 'data:image/webp;base64,AAAA' } }],
    );
  });
});

describe('a custom tool sent as a function', () => {
  const wrapper = (text: string, more: Value = {}): Value => called(callA, text, { id: 'a', ...more });
  it.each<[string, Value[], string[]]>([
    [
      'is called with its text, in one piece',
      [
        added(wrapper(''), at(0)),
        argumentsDelta('{"inp', at(0, 'a')),
        argumentsDelta('ut":"x\\ny"}', at(0, 'a')),
        done(wrapper('{"input":"x\\ny"}'), at(0)),
        completed(wrapper('{"input":"x\\ny"}')),
      ],
      [`${callA} f x\ny`],
    ],
    [
      'is not called when its wrapper is cut',
      [
        added(wrapper(''), at(0)),
        argumentsDelta('{"input":"x', at(0, 'a')),
        done(wrapper('{"input":"x', { status: 'incomplete' }), at(0)),
        incomplete('max_output_tokens'),
      ],
      [],
    ],
    [
      'is called with the raw text if that is not a wrapper',
      [completed(wrapper('*** Begin Patch'))],
      [`${callA} f *** Begin Patch`],
    ],
  ])('%s', (_case, values, calls) => {
    const reader = readerOf(['f']);
    const pieces = push(reader, values).flatMap(({ choices }) =>
      choices.flatMap((choice) => choice.delta.tool_calls ?? []),
    );
    expect(pieces.map(pieceText)).toEqual(calls);
    expect(pieces.every(({ type }) => type === 'custom')).toBe(true);
  });
});
