import { describe, expect, it } from 'vitest';
import { UpstreamToolCalls } from '../../../shared/upstreams/dialects/chat/tool-calls.ts';

/** The whole calls that some deltas add up to. */
function calls(...deltas: object[][]): [string, string][] {
  const machine = new UpstreamToolCalls('call_');
  const whole: [string, string][] = [];
  for (const piece of [...deltas.flatMap((pieces) => machine.push(pieces)), ...machine.end()]) {
    const known = whole[piece.index];
    if (known) known[1] += piece.function?.arguments ?? '';
    else whole[piece.index] = [piece.function?.name ?? '', piece.function?.arguments ?? ''];
  }
  return whole;
}
const piece = (name: string | undefined, text: string | undefined, more: object = {}): object => ({
  ...more,
  function: { ...(name !== undefined && { name }), ...(text !== undefined && { arguments: text }) },
});

describe('tool calls of upstreams with habits of their own', () => {
  it.each([
    [
      'index 0 for all, whole arguments',
      [[piece('f', '{"a":1}', { index: 0 })], [piece('f', '{"a":2}', { index: 0 })]],
      [
        ['f', '{"a":1}'],
        ['f', '{"a":2}'],
      ],
    ],
    [
      'one id for two calls without index',
      [[piece('f', '{"a":1}', { id: 'x' })], [piece('f', '{"a":2}', { id: 'x' })]],
      [
        ['f', '{"a":1}'],
        ['f', '{"a":2}'],
      ],
    ],
    [
      'name and id on every piece',
      [
        [piece('f', '{"a"', { index: 0, id: 'x' })],
        [piece('f', ':1}', { index: 0, id: 'x' })],
        [piece('f', '', { index: 0, id: 'x' })],
      ],
      [['f', '{"a":1}']],
    ],
    [
      'the name on every piece, an id on the first',
      [
        [piece('f', '', { index: 0, id: 'x' })],
        [piece('f', '{"a":1}', { index: 0 })],
        [piece('f', '', { index: 0 })],
      ],
      [['f', '{"a":1}']],
    ],
    [
      'a new id on every piece',
      [[piece('f', '{"a"', { index: 0, id: 'x' })], [piece('f', ':1}', { index: 0, id: 'y' })]],
      [['f', '{"a":1}']],
    ],
    [
      'no index, no id, no arguments',
      [[piece('f', undefined)], [piece('g', undefined)]],
      [
        ['f', '{}'],
        ['g', '{}'],
      ],
    ],
    [
      'an id first, the name later',
      [[{ index: 0, id: 'x' }], [piece('f', '{}', { index: 0 })]],
      [['f', '{}']],
    ],
    [
      'arguments as an object',
      [[{ index: 0, function: { name: 'f', arguments: { a: 1 } } }]],
      [['f', '{"a":1}']],
    ],
    [
      'interleaved by index',
      [
        [piece('f', '{', { index: 0 }), piece('g', '{', { index: 1 })],
        [piece(undefined, '}', { index: 1 })],
        [piece(undefined, '}', { index: 0 })],
      ],
      [
        ['f', '{}'],
        ['g', '{}'],
      ],
    ],
    [
      'interleaved by position',
      [
        [piece('f', '{'), piece('g', '{')],
        [piece(undefined, '"a":1}'), piece(undefined, '}')],
      ],
      [
        ['f', '{"a":1}'],
        ['g', '{}'],
      ],
    ],
    [
      'indexes that begin at 7',
      [[piece('f', '{}', { index: 7 })], [piece('g', '{}', { index: 9 })]],
      [
        ['f', '{}'],
        ['g', '{}'],
      ],
    ],
  ])('%s', (_case, deltas, expected) => {
    expect(calls(...deltas)).toEqual(expected);
  });

  it('gives every call an id of its own', () => {
    const machine = new UpstreamToolCalls('call_');
    const pieces = [
      { index: 0, id: 'same' },
      { index: 1, id: 'same' },
      { index: 2, id: '' },
    ];
    const ids = machine.push(pieces.map((more) => piece('f', '{}', more))).map((call) => call.id);
    expect(ids).toEqual(['same', 'call_1', 'call_2']);
  });
});
