/**
 * Each place of a request that a vendor's client can fill, with a body that fills it and one that does not. A place is a
 * field, or a variant of a union, such as a block or an item. The fields of a declared type are visited once, its variants
 * wherever they may stand.
 */
import { isRecord, type JsonRecord } from '../../shared/wire/json.ts';
import type { ObjectShape, Shape } from './sdk-types.ts';

export interface Place {
  /** Such as `messages[user].content[image].source[url].url`. */
  path: string;
  /** Of the field, or the type of the variant. */
  name: string;
  /** Each with the body that has it. Several for a field with listed values. */
  filled: readonly { value: unknown; body: JsonRecord }[];
  /** The same body without the field, or with another value of a required one. The first that the relay takes counts. */
  empty: readonly JsonRecord[];
}

type Fill = (value: unknown) => JsonRecord;

export interface Vocabulary {
  /** The value of a text or a number in a field of this name or at this path. */
  probes: Record<string, readonly [filled: unknown, other?: unknown]>;
  /** The body with a value of this field of its own. */
  fill(field: string, value: unknown): JsonRecord;
  /** Fields without which an object says nothing, by the end of its path. */
  least: Record<string, JsonRecord>;
  /** Values that ask for nothing, by the name of the field: they hold without it. */
  defaults: Record<string, unknown>;
  /** A place that no client fills, such as a block in a turn that cannot have it. */
  excludes(path: string): boolean;
}

const token = 'probe7';
const otherToken = 'other8';

/** Lists the places of some types, each once. What holds a place comes before it. */
export function listAllPlaces(shapes: readonly ObjectShape[], vocabulary: Vocabulary): Place[] {
  const places = new Map<string, Place>();
  for (const shape of shapes)
    for (const place of listPlaces(shape, vocabulary))
      if (!places.has(place.path)) places.set(place.path, place);
  return [...places.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

export const isInside = (path: string, holder: string): boolean =>
  path.startsWith(holder) && /^[.[]/.test(path.slice(holder.length));

/** Lists the places of all fields of a request. */
function listPlaces(root: ObjectShape, vocabulary: Vocabulary): Place[] {
  const lister = new PlaceLister(vocabulary);
  // The fields of tools are visited where most clients have them.
  const fields = [...root.fields].toSorted(([a], [b]) => Number(b === 'tools') - Number(a === 'tools'));
  for (const [field, { shape, isOptional }] of fields)
    lister.visit(shape, {
      path: field,
      isOptional,
      fill: (value) => vocabulary.fill(field, value),
      depth: 0,
    });
  return lister.places;
}

/** The shortest value of a type. */
export const leastOf = (shape: ObjectShape, vocabulary: Vocabulary): JsonRecord =>
  new PlaceLister(vocabulary).leastOf(shape, '', 0);

interface Spot {
  path: string;
  isOptional: boolean;
  fill: Fill;
  depth: number;
}

/** Bounds types that hold themselves. */
const depthMax = 7;

class PlaceLister {
  readonly places: Place[] = [];
  readonly #visited = new Set<string>();
  readonly #vocabulary: Vocabulary;

  constructor(vocabulary: Vocabulary) {
    this.#vocabulary = vocabulary;
  }

  visit(shape: Shape, spot: Spot): void {
    if (this.#vocabulary.excludes(spot.path) || spot.depth > depthMax) return;
    const options = shape.kind === 'union' ? shape.options : [shape];
    const literals = options.flatMap((each) => (each.kind === 'literal' ? [each.value] : []));
    const plain = options.find(({ kind }) => kind === 'text' || kind === 'number' || kind === 'flag');
    if (literals.length > 1 || (literals.length === 1 && spot.isOptional) || (literals.length > 0 && plain))
      this.#add(spot, literals);
    else if (plain || options[0]?.kind === 'map')
      this.#add(spot, [this.#plain(plain ?? { kind: 'map' }, spot.path, 0)]);
    for (const option of options) {
      if (option.kind === 'list') this.#visitList(option.item, spot);
      else if (option.kind === 'object') this.#visitObject(option, spot, this.#labelOf(option, options));
    }
  }

  #visitList(item: Shape, spot: Spot): void {
    const fill: Fill = (value) =>
      spot.fill(value === undefined ? (spot.isOptional ? undefined : []) : [value]);
    this.visit(item, { ...spot, isOptional: true, path: `${spot.path}[]`, fill, depth: spot.depth + 1 });
  }

  /** @param label undefined: the object is the only one that may stand here */
  #visitObject(shape: ObjectShape, spot: Spot, label: string | undefined): void {
    const path = label === undefined ? spot.path : `${spot.path.replace(/\[\]$/, '')}[${label}]`;
    if (this.#vocabulary.excludes(path)) return;
    const least = this.leastOf(shape, path, 0);
    // An empty object says nothing that its fields do not.
    if ((spot.isOptional || label !== undefined) && Object.keys(least).length > 0)
      this.#add({ ...spot, path }, [least], label ?? path.split('.').at(-1));
    const key = `${shape.name.replace(/^Beta/, '')}|${[...shape.fields.keys()].join()}`;
    if (this.#visited.has(key)) return;
    this.#visited.add(key);
    for (const [field, { shape: inner, isOptional }] of shape.fields) {
      const fill: Fill = (value) => {
        const { [field]: _empty, ...others } = sources.has(field) ? omitSources(least) : least;
        return spot.fill(value === undefined ? others : { ...others, [field]: value });
      };
      this.visit(inner, { path: `${path}.${field}`, isOptional, fill, depth: spot.depth + 1 });
    }
  }

  #labelOf(shape: ObjectShape, options: readonly Shape[]): string | undefined {
    const objects = options.filter((each) => each.kind === 'object');
    if (objects.length < 2) return undefined;
    const label = typeOf(shape);
    const same = objects.filter((each) => typeOf(each) === label);
    return label === undefined || same.length > 1
      ? [label, shape.name.split('.').at(-1)?.replace(/^Beta/, '')].filter(Boolean).join(' ')
      : label;
  }

  #add(
    { path, isOptional, fill }: Spot,
    values: readonly unknown[],
    name = path.split('.').at(-1) ?? '',
  ): void {
    const usual = this.#vocabulary.defaults[nameIn(path)];
    const asking = values.filter((value) => value !== usual);
    // Without a value that a required field must have, another listed one stands for it.
    const isListed = !isOptional && values.length > 1;
    const other = isListed
      ? asking.length < values.length
        ? usual
        : asking.shift()
      : this.#otherValue(values[0], path);
    const empty = isOptional ? [removeAbsent(fill(absentOf(values[0]))), fill(undefined)] : [fill(other)];
    const filled = asking.map((value) => ({ value, body: fill(value) }));
    if (filled.length > 0) this.places.push({ path, name: name.replace('[]', ''), filled, empty });
  }

  #otherValue(value: unknown, path: string): unknown {
    if (typeof value === 'string') return this.#plain({ kind: 'text' }, path, 1);
    if (typeof value === 'number') return this.#plain({ kind: 'number' }, path, 1);
    return typeof value === 'boolean' ? !value : undefined;
  }

  #plain({ kind }: Shape, path: string, which: 0 | 1): unknown {
    const { probes } = this.#vocabulary;
    const known = probes[path] ?? probes[nameIn(path)];
    if (known && which in known) return known[which];
    if (kind === 'number') return which === 0 ? 37 : 38;
    if (kind === 'flag') return which === 0;
    if (kind === 'map') return { [token]: token };
    return which === 0 ? token : otherToken;
  }

  leastOf(shape: ObjectShape, path: string, depth: number): JsonRecord {
    const required = [...shape.fields].filter(([, { isOptional }]) => !isOptional);
    const fields = required.map(([name, { shape: inner }]): [string, unknown] => [
      name,
      this.#leastValue(inner, `${path}.${name}`, depth + 1),
    ]);
    const more = Object.entries(this.#vocabulary.least).find(([end]) => path.endsWith(end))?.[1];
    return { ...Object.fromEntries(fields), ...more };
  }

  #leastValue(shape: Shape, path: string, depth: number): unknown {
    const options = shape.kind === 'union' ? shape.options : [shape];
    const option =
      options.find(({ kind }) => kind === 'text') ?? options.find(({ kind }) => kind !== 'null') ?? shape;
    if (option.kind === 'literal') {
      const usual = this.#vocabulary.defaults[nameIn(path)];
      return options.some((each) => each.kind === 'literal' && each.value === usual) ? usual : option.value;
    }
    if (option.kind === 'object') return depth > depthMax ? {} : this.leastOf(option, path, depth);
    if (option.kind === 'list') {
      const { item } = option;
      return depth > depthMax ? [] : [this.#leastValue(item, `${path}[]`, depth + 1)];
    }
    return this.#plain(option, path, 0);
  }
}

/** An object has its content in one of these fields. */
const sources: ReadonlySet<string> = new Set(['file_id', 'file_url', 'file_data', 'image_url']);
const omitSources = (least: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(least).filter(([field]) => !sources.has(field)));

const nameIn = (path: string): string =>
  path
    .split('.')
    .at(-1)
    ?.replaceAll(/\[.*?\]/g, '') ?? '';

// A variant is compared with the body that lacks it alone, and not the calls and turns that it needs.

const absent = Symbol('absent');
const absentOf = (value: unknown): unknown => (isRecord(value) ? { ...value, [absent]: true } : undefined);
const isAbsent = (value: unknown): boolean => isRecord(value) && absent in value;

function removeAbsent<T>(value: T): T {
  if (Array.isArray(value)) return value.filter((each) => !isAbsent(each)).map(removeAbsent) as T;
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([, each]) => !isAbsent(each));
  return Object.fromEntries(kept.map(([name, each]) => [name, removeAbsent(each)])) as T;
}

/** The value of `type` or `role` by which a variant is told from others. */
export function typeOf({ fields }: ObjectShape): string | undefined {
  for (const name of ['type', 'role']) {
    const shape = fields.get(name)?.shape;
    const options = shape?.kind === 'union' ? shape.options : shape ? [shape] : [];
    const literal = options.find((each) => each.kind === 'literal');
    if (literal) return String(literal.value);
  }
  return undefined;
}
