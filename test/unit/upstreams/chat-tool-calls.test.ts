import { describe, expect, it } from 'vitest';
import { callPiece, wholeCalls } from '../../support/tool-call-pieces.ts';

describe('tool calls of upstreams with habits of their own', () => {
  it.each([
    [
      'index 0 for all, whole arguments',
      [[callPiece('f', '{"a":1}', { index: 0 })], [callPiece('f', '{"a":2}', { index: 0 })]],
      [
        ['f', '{"a":1}'],
        ['f', '{"a":2}'],
      ],
    ],
    [
      'one id for two calls without index',
      [[callPiece('f', '{"a":1}', { id: 'x' })], [callPiece('f', '{"a":2}', { id: 'x' })]],
      [
        ['f', '{"a":1}'],
        ['f', '{"a":2}'],
      ],
    ],
    [
      'name and id on every piece',
      [
        [callPiece('f', '{"a"', { index: 0, id: 'x' })],
        [callPiece('f', ':1}', { index: 0, id: 'x' })],
        [callPiece('f', '', { index: 0, id: 'x' })],
      ],
      [['f', '{"a":1}']],
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
      'no index, no id, no arguments',
      [[callPiece('f', undefined)], [callPiece('g', undefined)]],
      [
        ['f', '{}'],
        ['g', '{}'],
      ],
    ],
    [
      'an id first, the name later',
      [[{ index: 0, id: 'x' }], [callPiece('f', '{}', { index: 0 })]],
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
        [callPiece('f', '{', { index: 0 }), callPiece('g', '{', { index: 1 })],
        [callPiece(undefined, '}', { index: 1 })],
        [callPiece(undefined, '}', { index: 0 })],
      ],
      [
        ['f', '{}'],
        ['g', '{}'],
      ],
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
    [
      'indexes that begin at 7',
      [[callPiece('f', '{}', { index: 7 })], [callPiece('g', '{}', { index: 9 })]],
      [
        ['f', '{}'],
        ['g', '{}'],
      ],
    ],
  ])('%s', (_case, deltas, expected) => {
    expect(wholeCalls(deltas)).toEqual(expected);
  });
});
