import { isObject } from '../script/vendor.ts';

/**
 * What Anthropic's structured outputs refuse of a JSON Schema, in its words where threads show them. Source: the page
 * "Structured outputs", JSON Schema limitations, November 2026.
 */

type Schema = Record<string, unknown>;

const supported: Record<string, string[]> = {
  object: ['properties', 'required', 'additionalProperties'],
  array: ['items', 'minItems'],
  string: ['format', 'pattern'],
};
const everywhere = [
  'type',
  'title',
  'description',
  'enum',
  'const',
  'anyOf',
  'allOf',
  '$defs',
  'definitions',
];
const formats = new Set('date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '));

/** The schemas inside a schema, it first. */
function* schemasIn(schema: unknown): Generator<Schema> {
  if (!isObject(schema)) return;
  yield schema;
  for (const list of ['properties', '$defs', 'definitions'])
    if (isObject(schema[list])) for (const each of Object.values(schema[list])) yield* schemasIn(each);
  for (const list of ['anyOf', 'oneOf', 'allOf'])
    if (Array.isArray(schema[list])) for (const each of schema[list]) yield* schemasIn(each);
  yield* schemasIn(schema['items']);
}

const typesOf = ({ type, properties, items }: Schema): string[] =>
  type === undefined ? (properties ? ['object'] : items ? ['array'] : []) : [type].flat().map(String);

/** An object that says nothing of other properties, or allows them. */
export const openObject = (schema: unknown): string | undefined =>
  [...schemasIn(schema)].some(
    (each) => typesOf(each).includes('object') && each['additionalProperties'] !== false,
  )
    ? "For 'object' type, 'additionalProperties' must be explicitly set to false"
    : undefined;

/** A keyword that the type does not have there. */
export function refusedKeyword(schema: unknown): string | undefined {
  for (const each of schemasIn(schema)) {
    if ('$ref' in each) continue;
    const types = typesOf(each);
    const known = new Set([...everywhere, ...types.flatMap((type) => supported[type] ?? [])]);
    const others = Object.keys(each).filter((keyword) => !known.has(keyword));
    if (others.length > 0) return `For '${types[0]}' type, properties ${others.join(', ')} are not supported`;
    const { minItems = 0, format = 'date', pattern = '' } = each;
    if (!(minItems === 0 || minItems === 1))
      return `For 'array' type, 'minItems' values other than 0 or 1 are not supported`;
    if (!formats.has(String(format))) return `For 'string' type, format ${String(format)} is not supported`;
    if (/\(\?[=!<]|\\b/.test(String(pattern))) return `For 'string' type, the pattern is not supported`;
    if (types.length === 0 && !['enum', 'const', 'anyOf', 'allOf'].some((keyword) => keyword in each))
      return 'Schema must have a type';
  }
  return undefined;
}

/** A reference that leads back to its own definition, or out of the definitions. */
export function recursion(schema: unknown): string | undefined {
  const resolve = (ref: unknown): unknown => {
    const [, list = '', name = ''] = /^#\/(\$defs|definitions)\/(.+)$/.exec(String(ref)) ?? [];
    const definitions = isObject(schema) ? schema[list] : undefined;
    return isObject(definitions) ? definitions[name] : undefined;
  };
  const leadsBack = (from: unknown, path: unknown[]): boolean =>
    [...schemasIn(from)].some(({ $ref: ref }) => {
      if (ref === undefined) return false;
      const target = resolve(ref);
      return target === undefined || path.includes(target) || leadsBack(target, [...path, target]);
    });
  return leadsBack(schema, []) ? 'Recursive schemas and external references are not supported' : undefined;
}
