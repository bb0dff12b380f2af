import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { plainAttributes, plainValues } from '../../../../shared/adapters/dynamodb/table-client.ts';

const sets = [new Set(['a', 'b']), new Set([1, 2.5]), new Set([new Uint8Array([1])])];
const leaf = fc.oneof(
  fc.string(),
  fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e15, max: 1e15 }),
  fc.boolean(),
  fc.constant(null),
  fc.uint8Array(),
  fc.constantFrom(...sets),
);
const { item } = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, leaf, fc.array(tie('value')), tie('item')),
  item: fc.dictionary(fc.string(), tie('value')),
}));

it('items are read as the SDK reads them, whatever they hold', () => {
  fc.assert(
    fc.property(item, (made) => {
      const attributes = marshall(made);
      expect(plainValues(attributes)).toEqual(unmarshall(attributes));
    }),
    { numRuns: 300 },
  );
});

it('a number out of range is read as near as can be, for a schema to report', () => {
  expect(plainValues({ of: { N: '1e120' }, by: { N: '9007199254740993' } })).toEqual({
    of: 1e120,
    by: 9007199254740992,
  });
});

it('texts and numbers are written as the SDK writes them', () => {
  const values = { id: 'cooldowns', ':until': 1_763_000_000_000.5, empty: '' };
  expect(plainAttributes(values)).toEqual(marshall(values));
});
