/**
 * JSON Schema as the vendor's grammars take it: for output formats and strict tools. Keywords that it refuses move into
 * the description, where the model reads them, and are named. Sources: the vendor's page "Structured outputs" (JSON
 * Schema limitations) and what its SDK makes of a schema (`transformJSONSchema`, 1.12.0), November 2026.
 */
import { isRecord, type JsonRecord } from '../../../wire/json.ts';

export interface GrammarSchema {
  schema: JsonRecord;
  /** Keywords that do not bind the model any more. */
  moved: readonly string[];
  /** What the vendor bounds over all schemas of a request. */
  optionalProperties: number;
  unions: number;
}

/**
 * Undefined: nothing that the vendor takes holds what the schema asks for. It is recursive, refers to elsewhere, or allows
 * names or values of any kind.
 */
export function grammarSchema(schema: unknown): GrammarSchema | undefined {
  const conversion = new Conversion(definitionsOf(schema));
  const converted = conversion.node(schema);
  if (!conversion.holds || isRecursive(conversion.references)) return undefined;
  const { moved, optionalProperties, unions } = conversion;
  return { schema: converted, moved: [...moved], optionalProperties, unions };
}

/** Keywords that keep their meaning and hold no schema. */
const kept = new Set(['type', 'title', 'description', 'required']);
const formats = new Set(
  'date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '),
) as ReadonlySet<unknown>;
/** Look-around, back references and word boundaries. */
const hardPattern = /\(\?(?!:)|\\[1-9bBk]/;
/** They name the document and constrain nothing. */
const nameless = new Set(['$schema', '$id', '$anchor', '$comment']);
/** Keywords that bind. Only these are named, so that a client writes no names of its own into a header. */
const binding = new Set(
  (
    'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format minItems maxItems ' +
    'uniqueItems contains minContains maxContains minProperties maxProperties propertyNames patternProperties ' +
    'dependentRequired dependentSchemas unevaluatedProperties unevaluatedItems not if then else'
  ).split(' '),
);
const definitionLists = ['$defs', 'definitions'];
const reference = /^#\/(?:\$defs|definitions)\/([^/]+)$/;

const definitionsOf = (schema: unknown): Set<string> =>
  new Set(
    definitionLists.flatMap((list) =>
      isRecord(schema) && isRecord(schema[list]) ? Object.keys(schema[list]) : [],
    ),
  );

/** One schema on its way. What is learned of it is complete once its root was converted. */
class Conversion {
  holds = true;
  readonly moved = new Set<string>();
  optionalProperties = 0;
  unions = 0;
  /** The definitions that each definition refers to. */
  readonly references = new Map<string, Set<string>>();
  readonly #definitions: ReadonlySet<string>;
  #within: string | undefined;

  constructor(definitions: ReadonlySet<string>) {
    this.#definitions = definitions;
  }

  node(schema: unknown): JsonRecord {
    if (!isRecord(schema)) return this.#fails();
    if (typeof schema['$ref'] === 'string') return this.#reference(schema, schema['$ref']);
    const { allOf } = schema;
    // A single part says what its parent would: generators wrap a reference in it to describe it.
    if (Array.isArray(allOf) && allOf.length === 1 && isRecord(allOf[0])) {
      const { allOf: _, ...rest } = schema;
      return this.node({ ...allOf[0], ...rest });
    }
    const converted: JsonRecord = {};
    const described: string[] = [];
    for (const [keyword, value] of Object.entries(schema)) {
      if (this.#keeps(converted, keyword, value) || nameless.has(keyword)) continue;
      if (binding.has(keyword)) this.moved.add(keyword);
      described.push(`${keyword}: ${JSON.stringify(value)}`);
    }
    this.#close(converted, schema);
    if (Array.isArray(schema['type'])) this.unions += 1;
    if (!['type', 'enum', 'const', 'anyOf', 'allOf'].some((keyword) => keyword in converted)) this.#fails();
    if (described.length === 0) return converted;
    const { description } = schema;
    const texts = [...(typeof description === 'string' ? [description] : []), described.join(', ')];
    return { ...converted, description: texts.join('\n') };
  }

  /** Whether the keyword goes up, as it is or with its schemas converted. Changes `converted`. */
  #keeps(converted: JsonRecord, keyword: string, value: unknown): boolean {
    if (kept.has(keyword)) converted[keyword] = value;
    else if (keyword === 'enum' || keyword === 'const') {
      if ([value].flat().some((each) => typeof each === 'object' && each !== null)) this.#fails();
      converted[keyword] = value;
    } else if (definitionLists.includes(keyword)) converted[keyword] = this.#definitionList(value);
    else if (keyword === 'properties') converted[keyword] = this.#named(value);
    else if (keyword === 'items') converted[keyword] = this.node(value);
    else if (keyword === 'anyOf' || keyword === 'oneOf') this.#union(converted, keyword, value);
    else if (keyword === 'allOf') converted[keyword] = this.#parts(value);
    else if (keyword === 'prefixItems') this.#fails();
    else if (keyword === 'format' && formats.has(value)) converted[keyword] = value;
    else if (keyword === 'pattern' && typeof value === 'string' && !hardPattern.test(value))
      converted[keyword] = value;
    else if (keyword === 'minItems' && (value === 0 || value === 1)) converted[keyword] = value;
    else return keyword === 'additionalProperties';
    return true;
  }

  /** Every object names all that it may hold. Changes `converted`. */
  #close(converted: JsonRecord, schema: JsonRecord): void {
    const { type, properties, additionalProperties: others } = schema;
    if (![type].flat().includes('object') && !(type === undefined && isRecord(properties))) return;
    const names = isRecord(properties) ? Object.keys(properties) : [];
    const isOpen = others === true || isRecord(others);
    // What a closed object allows an open one allows too, but a map that names nothing would only be empty.
    if (names.length === 0 && (isOpen || (others === undefined && !isRecord(properties)))) this.#fails();
    if (isOpen) this.moved.add('additionalProperties');
    const required = Array.isArray(schema['required']) ? schema['required'] : [];
    this.optionalProperties += names.filter((name) => !required.includes(name)).length;
    converted['type'] ??= 'object';
    converted['additionalProperties'] = false;
  }

  #union(converted: JsonRecord, keyword: string, value: unknown): void {
    if (!Array.isArray(value) || converted['anyOf']) this.#fails();
    if (keyword === 'oneOf') this.moved.add(keyword);
    this.unions += 1;
    converted['anyOf'] = (Array.isArray(value) ? value : []).map((each) => this.node(each));
  }

  /** Closed objects would exclude each other. */
  #parts(value: unknown): unknown[] {
    const parts = Array.isArray(value) ? value.map((each) => this.node(each)) : [];
    if (parts.some((part) => '$ref' in part || 'additionalProperties' in part)) this.#fails();
    return parts;
  }

  #named(value: unknown): JsonRecord {
    if (!isRecord(value)) return this.#fails();
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.node(each)]));
  }

  #definitionList(value: unknown): JsonRecord {
    if (!isRecord(value)) return this.#fails();
    const outer = this.#within;
    const converted = Object.entries(value).map(([name, each]) => {
      this.#within = name;
      return [name, this.node(each)];
    });
    this.#within = outer;
    return Object.fromEntries(converted) as JsonRecord;
  }

  /** The vendor takes nothing beside a reference. */
  #reference(schema: JsonRecord, target: string): JsonRecord {
    const [, name] = reference.exec(target) ?? [];
    if (name === undefined || !this.#definitions.has(name)) return this.#fails();
    for (const keyword of Object.keys(schema)) if (binding.has(keyword)) this.moved.add(keyword);
    if (this.#within !== undefined) {
      const known = this.references.get(this.#within) ?? new Set();
      this.references.set(this.#within, known.add(name));
    }
    const lists = definitionLists.filter((list) => list in schema);
    return {
      $ref: target,
      ...Object.fromEntries(lists.map((list) => [list, this.#definitionList(schema[list])])),
    };
  }

  #fails(): JsonRecord {
    this.holds = false;
    return {};
  }
}

function isRecursive(references: ReadonlyMap<string, ReadonlySet<string>>): boolean {
  const done = new Set<string>();
  const leadsBack = (name: string, path: ReadonlySet<string>): boolean => {
    if (path.has(name)) return true;
    if (done.has(name)) return false;
    const longer = new Set([...path, name]);
    const found = [...(references.get(name) ?? [])].some((next) => leadsBack(next, longer));
    done.add(name);
    return found;
  };
  return [...references.keys()].some((name) => leadsBack(name, new Set()));
}
