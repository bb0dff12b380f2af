import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { attributesOf, valuesOf } from '../../../../shared/adapters/dynamodb/table-client.ts';

const sets = [new Set(['a', 'b']), new Set([1, 2.5])];
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
  item: fc.dictionary(
    fc.string().filter((name) => name !== '__proto__'),
    tie('value'),
  ),
}));

it('items of any content are read as the SDK reads them', () => {
  fc.assert(
    fc.property(item, (made) => {
      const attributes = marshall(made);
      expect(valuesOf(attributes)).toEqual(unmarshall(attributes));
    }),
    { numRuns: 100 },
  );
});

it('a number out of range is read as the nearest number, so that a schema reports it', () => {
  expect(valuesOf({ of: { N: '1e120' }, by: { N: '9007199254740993' } })).toEqual({
    of: 1e120,
    by: 9007199254740992,
  });
});

it('items are written as the SDK writes them, without undefined values', () => {
  fc.assert(
    fc.property(item, (made) => {
      expect(attributesOf(made)).toEqual(marshall(made));
    }),
    { numRuns: 100 },
  );
  expect(attributesOf({ of: undefined, by: 2n ** 70n })).toEqual({ by: { N: '1180591620717411303424' } });
});
