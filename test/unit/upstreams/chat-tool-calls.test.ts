import { describe, expect, it } from 'vitest';
import { DeclaredNames } from '../../../shared/upstreams/dialects/chat/calls/declared-names.ts';
import { UpstreamToolCalls } from '../../../shared/upstreams/dialects/chat/calls/tool-calls.ts';
import type { ToolCallDelta } from '../../../shared/wire/chat-response.ts';

interface Setting {
  declared?: string[];
  wrapped?: string[];
  whole?: boolean;
}

function machineWith({ declared = [], wrapped = [] }: Setting = {}): UpstreamToolCalls {
  let shown = 0;
  return new UpstreamToolCalls({
    showId: (id) => id ?? `call_${shown++}`,
    names: new DeclaredNames(declared),
    wrapped: new Set(wrapped),
    keep: () => undefined,
  });
}

function deltasOf(deltas: object[][], setting: Setting = {}): ToolCallDelta[] {
  const machine = machineWith(setting);
  return [...deltas.flatMap((pieces) => machine.push(pieces)), ...machine.end(setting.whole ?? true)];
}

/** The whole calls that some deltas add up to. */
function calls(deltas: object[][], setting: Setting = {}): [string, string][] {
  const whole: [string, string][] = [];
  for (const { index, function: called, custom } of deltasOf(deltas, setting)) {
    const known = whole[index];
    const text = called?.arguments ?? custom?.input ?? '';
    if (known) known[1] += text;
    else whole[index] = [called?.name ?? custom?.name ?? '', text];
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
    expect(calls(deltas)).toEqual(expected);
  });
});
