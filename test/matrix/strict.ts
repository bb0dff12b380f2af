/** A server that rejects fields outside its published types. */
import { isRecord, type JsonRecord } from '../../shared/wire/json.ts';
import type { ObjectShape, Shape } from './sdk-types.ts';

/** The path of the first field that none of the types has. */
export function findUnknownField(value: unknown, types: readonly Shape[], path = ''): string | undefined {
  // A text or a number has no fields. Most values are one.
  if (typeof value !== 'object' || value === null) return undefined;
  const options = types.flatMap((each) => (each.kind === 'union' ? each.options : [each]));
  if (options.some(({ kind }) => kind === 'map')) return undefined;
  if (Array.isArray(value)) {
    const items = options.flatMap((each) => (each.kind === 'list' ? [each.item] : []));
    if (items.length === 0) return undefined;
    return firstOf(value.map((each, i) => findUnknownField(each, items, `${path}[${i}]`)));
  }
  if (!isRecord(value)) return undefined;
  const objects = options.filter((each) => each.kind === 'object');
  const fitting = objects.filter((each) => fits(value, each));
  const found = (fitting.length > 0 ? fitting : objects).map((each) => findInObject(value, each, path));
  return found.includes(undefined) ? undefined : found[0];
}

const firstOf = (paths: (string | undefined)[]): string | undefined =>
  paths.find((path) => path !== undefined);

function findInObject(value: JsonRecord, { fields, isOpen }: ObjectShape, path: string): string | undefined {
  const unknown = Object.entries(value).map(([name, inner]) => {
    const field = fields.get(name);
    const at = path === '' ? name : `${path}.${name}`;
    return field ? findUnknownField(inner, [field.shape], at) : isOpen ? undefined : at;
  });
  return firstOf(unknown);
}

/** Whether its type and role, if present, match the variant. */
const fits = (value: JsonRecord, shape: ObjectShape): boolean =>
  ['type', 'role'].every((name) => {
    if (!(name in value)) return true;
    const literals = literalsOf(shape, name);
    return literals.length === 0 || literals.some((literal) => literal === value[name]);
  });

const knownLiterals = new WeakMap<ObjectShape, Map<string, unknown[]>>();

function literalsOf(object: ObjectShape, name: string): unknown[] {
  const known = knownLiterals.get(object) ?? new Map<string, unknown[]>();
  knownLiterals.set(object, known);
  const literals = known.get(name) ?? listLiterals(object, name);
  known.set(name, literals);
  return literals;
}

function listLiterals({ fields }: ObjectShape, name: string): unknown[] {
  const shape = fields.get(name)?.shape;
  const options = shape?.kind === 'union' ? shape.options : shape ? [shape] : [];
  return options.flatMap((each) => (each.kind === 'literal' ? [each.value] : []));
}
