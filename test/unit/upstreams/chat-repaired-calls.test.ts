import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  callPiece as piece,
  deltasOf,
  machineWith,
  wholeCalls,
  type ToolCallSetting,
} from '../../support/tool-call-pieces.ts';

type Case = [name: string, deltas: object[][], expected: [string, string][], setting?: ToolCallSetting];
const at = (index: unknown, id?: string): object => ({ index, ...(id !== undefined && { id }) });
const declared = ['get', 'get_weather', 'get_time'];

describe('tool calls of unusual upstreams', () => {
  it.each<Case>([
    [
      'one id for two calls without index',
      [[piece('f', '{"a":1}', { id: 'x' })], [piece('f', '{"a":2}', { id: 'x' })]],
      [
        ['f', '{"a":1}'],
        ['f', '{"a":2}'],
      ],
    ],
    [
      'the name on every piece, an id on the first',
      [[piece('f', '', at(0, 'x'))], [piece('f', '{"a":1}', at(0))], [piece('f', '', at(0))]],
      [['f', '{"a":1}']],
    ],
    [
      'a new id on every piece',
      [[piece('f', '{"a"', at(0, 'x'))], [piece('f', ':1}', at(0, 'y'))]],
      [['f', '{"a":1}']],
    ],
    ['an id first, the name later', [[at(0, 'x')], [piece('f', '{}', at(0))]], [['f', '{}']]],
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
  ])('%s', (_case, deltas, expected) => {
    expect(wholeCalls(deltas)).toEqual(expected);
  });
});

describe('a repeated call', () => {
  it.each<Case>([
    [
      'whole, with the finish reason',
      [
        [piece('f', '{"a"', at(0, 'x'))],
        [piece(undefined, ':1}', at(0))],
        [piece('f', '{"a":1}', at(0, 'x'))],
      ],
      [['f', '{"a":1}']],
    ],
    [
      'written with other white space and order',
      [[piece('f', '{"a":1,"b":2}', at(0, 'x'))], [piece('f', '{ "b": 2, "a": 1 }', at(0, 'x'))]],
      [['f', '{"a":1,"b":2}']],
    ],
    [
      'whole, after its beginning',
      [[piece('f', '{', at(0, 'x'))], [piece(undefined, '{"a":1}', at(0))]],
      [['f', '{"a":1}']],
    ],
    [
      'whole, with its name, where a value was expected',
      [[piece('f', '{"a":', at(0, 'x'))], [piece('f', '{"a":1}', at(0, 'x'))]],
      [['f', '{"a":1}']],
    ],
    [
      'not: an object inside that begins like the whole',
      [
        [piece('f', '{"a":', at(0, 'x'))],
        [piece(undefined, '{"a":1}', at(0))],
        [piece(undefined, '}', at(0))],
      ],
      [['f', '{"a":{"a":1}}']],
    ],
    ['twice in one piece', [[piece('f', '{"a":1}{"a":1}', at(0, 'x'))]], [['f', '{"a":1}']]],
    [
      'all calls in the last chunk',
      [
        [piece('f', '{"a":1}', at(0, 'x'))],
        [piece('g', '{"b":"}{"}', at(1, 'y'))],
        [piece('f', '{"a":1}', at(0, 'x')), piece('g', '{"b":"}{"}', at(1, 'y'))],
      ],
      [
        ['f', '{"a":1}'],
        ['g', '{"b":"}{"}'],
      ],
    ],
    [
      'an empty object before its arguments',
      [[piece('f', '{}', at(0, 'x'))], [piece(undefined, '{"a"', at(0))], [piece(undefined, ':1}', at(0))]],
      [['f', '{"a":1}']],
    ],
  ])('is one call: %s', (_case, deltas, expected, setting) => {
    expect(wholeCalls(deltas, setting)).toEqual(expected);
  });

  it.each<Case>([
    [
      'in one delta',
      [[piece('f', '{"a":1}'), piece('f', '{"a":1}')]],
      [
        ['f', '{"a":1}'],
        ['f', '{"a":1}'],
      ],
    ],
    [
      'without any identification',
      [[piece('f', '{"a":1}')], [piece('f', '{"a":1}')]],
      [
        ['f', '{"a":1}'],
        ['f', '{"a":1}'],
      ],
    ],
  ])('is two calls if the tool was called twice: %s', (_case, deltas, expected) => {
    expect(wholeCalls(deltas)).toEqual(expected);
  });
});

describe('the name of a call', () => {
  it.each<Case>([
    [
      'in pieces',
      [[piece('get_', '', at(0, 'x'))], [piece('weather', '', at(0))], [piece(undefined, '{}', at(0))]],
      [['get_weather', '{}']],
      { declared },
    ],
    [
      'in pieces, of which one is a name',
      [
        [piece('get', '', at(0, 'x'))],
        [piece('_time', undefined, at(0))],
        [piece(undefined, '{"a":1}', at(0))],
      ],
      [['get_time', '{"a":1}']],
      { declared },
    ],
    [
      'longer each time',
      [[piece('get', '', at(0, 'x'))], [piece('get_ti', '', at(0))], [piece('get_time', '', at(0))]],
      [['get_time', '{}']],
      { declared },
    ],
    [
      'of a tool that was not declared',
      [[piece('other', '', at(0, 'x'))], [piece(undefined, '{}', at(0))]],
      [['other', '{}']],
      { declared },
    ],
    [
      'with an index written as a string',
      [
        [piece('get', '{"a"', at('0', 'x')), piece('get', '{}', at('1', 'y'))],
        [piece(undefined, ':1}', at('0'))],
      ],
      [
        ['get', '{"a":1}'],
        ['get', '{}'],
      ],
      { declared },
    ],
  ])('is read completely: %s', (_case, deltas, expected, setting) => {
    // Calls are shown when their names are known, possibly in another order.
    const calls = wholeCalls(deltas, setting);
    expect(calls).toHaveLength(expected.length);
    expect(calls).toEqual(expect.arrayContaining(expected));
  });

  it('is complete in the first piece for the client', () => {
    const [first] = deltasOf([[piece('get_', '', at(0, 'x'))], [piece('time', '', at(0))]], { declared });
    expect(first).toMatchObject({ index: 0, id: 'x', type: 'function', function: { name: 'get_time' } });
  });

  it("fails the answer when it is longer than any tool's name", () => {
    const machine = machineWith({ declared: ['n'.repeat(64)] });
    expect(() => machine.push([piece('n'.repeat(65), '{}', at(0, 'x'))])).toThrow('too_large');
  });
});

describe('a custom call', () => {
  const wrapped = { wrapped: ['patch'], declared: ['patch', 'f'] };
  const cut = (text: string): object[][] => [
    [piece('patch', '', at(0, 'x'))],
    ...text.split('').map((c) => [piece(undefined, c, at(0))]),
  ];
  it.each([
    ['whole', '{"input":"a\\n\\"b\\""}', 'a\n"b"'],
    ['under another name', '{"patch":"a"}', 'a'],
    ['without a wrapper', '*** Begin', '*** Begin'],
    ['as a text in quotes', '"a"', 'a'],
    ['with another object', '{"a":1,"b":2}', '{"a":1,"b":2}'],
    ['empty', '', ''],
    ['of nothing', '{}', ''],
  ])('loses its wrapper and comes in one piece: %s', (_case, text, input) => {
    expect(deltasOf(cut(text), wrapped)).toEqual([
      { index: 0, id: 'x', type: 'custom', custom: { name: 'patch', input } },
    ]);
  });

  it('is never emitted when it was cut inside its wrapper', () => {
    const text = '{"input":"rm -rf build/tmp"}';
    for (let length = 0; length < text.length; length += 1) {
      expect(deltasOf(cut(text.slice(0, length)), { ...wrapped, whole: false })).toEqual([]);
      if (length > 0) expect(deltasOf(cut(text.slice(0, length)), wrapped)).toEqual([]);
    }
  });
});

describe('the time spent on calls', () => {
  it('is linear in their length, however often name and beginning are repeated', () => {
    // Parsed anew for every piece, these would be some 10^11 characters.
    const machine = machineWith({ declared: ['f'] });
    machine.push([piece('f', '{"a":"', at(0, 'x'))]);
    const part = 'x'.repeat(10);
    for (let i = 0; i < 150_000; i += 1) machine.push([piece('f', part, at(0, 'x'))]);
    machine.push([piece('f', '"}', at(0, 'x'))]);
    for (let i = 0; i < 1_000; i += 1)
      machine.push([piece('f', ' ', at(0, 'x')), piece('f', '', at(0, 'x'))]);
    expect(machine.shownCalls).toHaveLength(1);
  });

  it('depends on the repeats only: the call itself is parsed once, however often it comes again', () => {
    const json = JSON.stringify({ a: 'x'.repeat(10_000), b: 1 });
    const again = JSON.stringify({ b: 1, a: 'x'.repeat(10_000) });
    const parse = vi.spyOn(JSON, 'parse');
    onTestFinished(() => parse.mockRestore());
    const deltas = Array.from({ length: 50 }, () => [piece('f', again, at(0, 'x'))]);
    expect(wholeCalls([[piece('f', json, at(0, 'x'))], ...deltas])).toEqual([['f', json]]);
    expect(parse.mock.calls.filter(([text]) => text.length === json.length)).toHaveLength(2 * 50 + 1);
  });

  it('is limited by the number of calls', () => {
    const machine = machineWith();
    expect(() => {
      for (let i = 0; i < 2000; i += 1) machine.push([piece('f', '{"a":1}', at(i, `x${i}`))]);
    }).toThrow('too_large');
  });
});

it('any pieces become calls with dense indexes and one first piece each, and nothing is invented', () => {
  const text = fc.constantFrom('', '{', '{}', '"a":1', '}', '{"a":1}', ' ', 'x', '"');
  const anyPiece = fc.record(
    {
      index: fc.constantFrom(0, 1, '1', -1, null),
      id: fc.constantFrom('x', 'y', '', 'search:0'),
      type: fc.constantFrom('function', 'custom'),
      function: fc.record(
        { name: fc.constantFrom('get', 'get_', 'time', ''), arguments: text },
        { requiredKeys: [] },
      ),
      custom: fc.record({ name: fc.constantFrom('patch', ''), input: text }, { requiredKeys: [] }),
      extra_content: fc.constant({ google: { thought_signature: 's' } }),
    },
    { requiredKeys: [] },
  );
  const deltas = fc.array(fc.array(anyPiece, { maxLength: 3 }), { maxLength: 8 });
  fc.assert(
    fc.property(deltas, fc.boolean(), (pushed, whole) => {
      const seen = new Set<number>();
      for (const delta of deltasOf(pushed, { declared, wrapped: ['get'], whole })) {
        if (delta.id === undefined) expect(seen.has(delta.index)).toBe(true);
        else {
          expect(delta.index).toBe(seen.size);
          expect(delta.type).toBe(delta.custom ? 'custom' : 'function');
          seen.add(delta.index);
        }
      }
    }),
    { numRuns: 300 },
  );
});
