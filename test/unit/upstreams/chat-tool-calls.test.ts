import { describe, expect, it } from 'vitest';
import { callPiece, wholeCalls } from '../../support/tool-call-pieces.ts';

describe('tool calls of upstreams with habits of their own', () => {
  it.each([
    [
      'one id for two calls without index',
      [[callPiece('f', '{"a":1}', { id: 'x' })], [callPiece('f', '{"a":2}', { id: 'x' })]],
      [
        ['f', '{"a":1}'],
        ['f', '{"a":2}'],
      ],
    ],
    [
      'the name on every piece, an id on the first',
      [
        [callPiece('f', '', { index: 0, id: 'x' })],
        [callPiece('f', '{"a":1}', { index: 0 })],
        [callPiece('f', '', { index: 0 })],
      ],
      [['f', '{"a":1}']],
    ],
    [
      'a new id on every piece',
      [[callPiece('f', '{"a"', { index: 0, id: 'x' })], [callPiece('f', ':1}', { index: 0, id: 'y' })]],
      [['f', '{"a":1}']],
    ],
    [
      'an id first, the name later',
      [[{ index: 0, id: 'x' }], [callPiece('f', '{}', { index: 0 })]],
      [['f', '{}']],
    ],
    [
      'interleaved by position',
      [
        [callPiece('f', '{'), callPiece('g', '{')],
        [callPiece(undefined, '"a":1}'), callPiece(undefined, '}')],
      ],
      [
        ['f', '{"a":1}'],
        ['g', '{}'],
      ],
    ],
  ])('%s', (_case, deltas, expected) => {
    expect(wholeCalls(deltas)).toEqual(expected);
  });
});
