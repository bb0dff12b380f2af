/** The names in a schema of zod, each with the kinds of value that it takes. */
import type { Names } from './declared-names.ts';

type Definition = Record<string, unknown> & { type: string };

const definitionOf = (schema: unknown): Definition => (schema as { _zod: { def: Definition } })._zod.def;

/** @param alternatives more values of the outermost name */
export function schemaNames(schema: unknown, name: string, alternatives: string[] = []): Names {
  const kinds = new Set(kindsOf(schema));
  for (const each of alternatives) kinds.add(each);
  return { [name]: [...kinds].join(' | '), ...innerNames(schema, name) };
}

/** The schema of what users write, without its wrapper. */
function unwrap(schema: unknown): unknown {
  const { type, ...parts } = definitionOf(schema);
  if (type !== 'pipe') return parts['innerType'];
  // A map that is checked to be plain before it is read: `optionMap`.
  return /transform|custom/.test(definitionOf(parts['in']).type) ? parts['out'] : parts['in'];
}

const wrappers = new Map([
  ['optional', ['undefined']],
  ['default', ['undefined']],
  ['prefault', ['undefined']],
  ['nullable', ['null']],
  ['nonoptional', []],
  ['readonly', []],
  ['catch', []],
  ['pipe', []],
]);

const kindNames = new Map([
  ['object', 'map'],
  ['record', 'map'],
  ['array', 'list'],
  ['custom', 'any'],
  ['unknown', 'any'],
]);

function kindsOf(schema: unknown): string[] {
  const { type, ...parts } = definitionOf(schema);
  const more = wrappers.get(type);
  if (more) return [...kindsOf(unwrap(schema)), ...more];
  if (type === 'union') return (parts['options'] as unknown[]).flatMap(kindsOf);
  if (type === 'enum') return Object.values(parts['entries'] as object).map((value) => JSON.stringify(value));
  if (type === 'literal') return (parts['values'] as unknown[]).map((value) => JSON.stringify(value));
  return [kindNames.get(type) ?? type];
}

function innerNames(schema: unknown, name: string, isAlternative = false): Names {
  const { type, ...parts } = definitionOf(schema);
  if (wrappers.has(type)) return innerNames(unwrap(schema), name, isAlternative);
  // A member of one alternative is missing in the others.
  const more = isAlternative ? ['undefined'] : [];
  const { catchall: others } = parts;
  const inner: Names[] =
    type === 'object'
      ? [
          ...Object.entries(parts['shape'] as object).map(([each, value]) =>
            schemaNames(value, `${name}.${each}`, more),
          ),
          ...(others && definitionOf(others).type !== 'never' ? [schemaNames(others, `${name}.*`)] : []),
        ]
      : type === 'array'
        ? [schemaNames(parts['element'], `${name}[]`)]
        : type === 'record'
          ? [schemaNames(parts['valueType'], `${name}.*`)]
          : type === 'union'
            ? (parts['options'] as unknown[]).map((option) => innerNames(option, name, true))
            : [];
  return mergeNames(inner);
}

/** The alternatives of each name in all of them. */
export function mergeNames(parts: readonly Names[]): Names {
  const merged: Names = {};
  for (const [name, text] of parts.flatMap((part) => Object.entries(part))) {
    const before = merged[name];
    if (before === text) continue;
    const alternatives = [...(before?.split(' | ') ?? []), ...text.split(' | ')];
    merged[name] = [...new Set(alternatives)].join(' | ');
  }
  return merged;
}
