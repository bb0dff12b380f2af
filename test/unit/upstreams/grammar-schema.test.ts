/** JSON Schemas for Claude's grammars, compared with the double's rules, which share no code with them. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  openObject,
  findRecursion,
  findRefusedKeyword,
} from '../../../infra/local/vendors/messages/rules.ts';
import { convertSchema } from '../../../shared/upstreams/dialects/messages/grammar-schema.ts';

type Json = Record<string, unknown>;

const object = (properties: Json, more: Json = {}): Json => ({ type: 'object', properties, ...more });
const closed = (properties: Json, more: Json = {}): Json =>
  object(properties, { ...more, additionalProperties: false });
const refusals = (schema: unknown): (string | undefined)[] =>
  [openObject, findRefusedKeyword, findRecursion].map((find) => find(schema));

describe('a schema for a grammar', () => {
  it.each<[string, Json, Json, string[]]>([
    [
      'bounds move into the description',
      object({ age: { type: 'integer', description: 'In years.', minimum: 0, maximum: 150 } }),
      closed({ age: { type: 'integer', description: 'In years.\nminimum: 0, maximum: 150' } }),
      ['minimum', 'maximum'],
    ],
    [
      'lengths, too, and patterns that look around',
      object({
        a: { type: 'string', minLength: 2, pattern: '^(?=a)' },
        b: { type: 'string', pattern: '^a+$' },
      }),
      closed({
        a: { type: 'string', description: 'minLength: 2, pattern: "^(?=a)"' },
        b: { type: 'string', pattern: '^a+$' },
      }),
      ['minLength', 'pattern'],
    ],
    [
      'minItems stays where it is 0 or 1',
      object({
        a: { type: 'array', items: { type: 'string' }, minItems: 1 },
        b: { type: 'array', items: { type: 'string' }, minItems: 2, uniqueItems: true },
      }),
      closed({
        a: { type: 'array', items: { type: 'string' }, minItems: 1 },
        b: { type: 'array', items: { type: 'string' }, description: 'minItems: 2, uniqueItems: true' },
      }),
      ['minItems', 'uniqueItems'],
    ],
    [
      'oneOf becomes anyOf',
      object({ a: { oneOf: [{ type: 'string' }, { type: 'null' }] } }),
      closed({ a: { anyOf: [{ type: 'string' }, { type: 'null' }] } }),
      ['oneOf'],
    ],
    [
      'a single allOf is what it says',
      object({ a: { allOf: [{ $ref: '#/$defs/d' }], description: 'D.' } }, { $defs: { d: object({}) } }),
      closed({ a: { $ref: '#/$defs/d' } }, { $defs: { d: closed({}) } }),
      [],
    ],
    [
      'objects that name properties are closed',
      object({ a: object({ b: { enum: ['x'] } }, { additionalProperties: true }) }),
      closed({ a: closed({ b: { enum: ['x'] } }) }),
      ['additionalProperties'],
    ],
    [
      'what names the document goes, what describes stays in words, a client’s own keyword is not named',
      object({ a: { type: 'string', examples: ['x'], 'x-own\r\n': 1 } }, { $schema: 'https://x', $id: 'y' }),
      closed({ a: { type: 'string', description: 'examples: ["x"], x-own\r\n: 1' } }),
      [],
    ],
  ])('%s', (_case, schema, expected, moved) => {
    const converted = convertSchema(schema);
    expect(converted?.schema).toEqual(expected);
    expect(converted?.moved).toEqual(moved);
    expect(refusals(converted?.schema)).toEqual([undefined, undefined, undefined]);
  });

  it.each<[string, Json]>([
    ['recursion', { $ref: '#/$defs/a', $defs: { a: object({ a: { $ref: '#/$defs/a' } }) } }],
    [
      'recursion over two',
      object(
        { a: { $ref: '#/$defs/a' } },
        { $defs: { a: object({ b: { $ref: '#/$defs/b' } }), b: object({ a: { $ref: '#/$defs/a' } }) } },
      ),
    ],
    ['itself', object({ a: { $ref: '#' } })],
    ['another document', object({ a: { $ref: 'https://x/y.json' } })],
    ['a map', object({ a: { type: 'object', additionalProperties: { type: 'string' } } })],
    ['an object of any kind', object({ a: { type: 'object' } })],
    ['a value of any kind', object({ a: {} })],
    ['a value of any kind in a list', object({ a: { type: 'array', items: true } })],
    ['a tuple', object({ a: { type: 'array', prefixItems: [{ type: 'string' }] } })],
    ['objects as values', object({ a: { enum: [{ b: 1 }] } })],
    ['two objects at once', object({ a: { allOf: [object({ b: {} }), object({ c: {} })] } })],
  ])('is not created for %s', (_case, schema) => {
    expect(convertSchema(schema)).toBeUndefined();
  });

  it("counts the vendor's limits over all tools", () => {
    const schema = object(
      { a: { type: ['string', 'null'] }, b: { anyOf: [{ type: 'string' }, { type: 'null' }] } },
      { required: ['a'] },
    );
    expect(convertSchema(schema)).toMatchObject({ optionalProperties: 1, unions: 2 });
  });

  const name = fc.constantFrom('type', 'properties', 'a', 'items', '$ref');
  const leaf = fc.constantFrom<Json>(
    { type: 'string', minLength: 1, format: 'email' },
    { type: 'string', format: 'iso-country', pattern: String.raw`\bx` },
    { type: ['integer', 'null'], exclusiveMinimum: 0, multipleOf: 2 },
    { enum: ['x', null] },
    { const: 1 },
    { $ref: '#/$defs/d', description: 'D.' },
    { type: 'object' },
    {},
  );
  const { schema: anySchema } = fc.letrec<{ schema: Json }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.dictionary(name, tie('schema'), { maxKeys: 3 }).map((properties) => object(properties)),
      fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(3) }),
      fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((oneOf) => ({ oneOf })),
      fc.array(tie('schema'), { minLength: 1, maxLength: 3 }).map((allOf) => ({ allOf, title: 'T' })),
    ),
  }));

  it('is one that the vendor accepts, or absent, for any schema', () => {
    let taken = 0;
    fc.assert(
      fc.property(anySchema, anySchema, (root, definition) => {
        const converted = convertSchema({ ...root, $defs: { d: definition } });
        if (!converted) return;
        taken += 1;
        expect(refusals(converted.schema)).toEqual([undefined, undefined, undefined]);
      }),
      { numRuns: 600, seed: 24 },
    );
    expect(taken).toBeGreaterThan(100);
  });
});
