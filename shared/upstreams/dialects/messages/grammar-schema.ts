/**
 * Converts JSON Schema to the form that the vendor's grammars accept, for output formats and strict tools. Unsupported
 * keywords move into the description, where the model reads them, and are reported. Sources: the vendor's page
 * "Structured outputs" (JSON Schema limitations) and its SDK (`transformJSONSchema`, 1.12.0), November 2026.
 */
import { isRecord, type JsonRecord } from '../../../wire/json.ts';

export interface GrammarSchema {
  schema: JsonRecord;
  /** Keywords that no longer bind the model. */
  moved: readonly string[];
  /** The vendor limits these over all schemas of a request. */
  optionalProperties: number;
  unions: number;
}

/**
 * Undefined if no supported schema enforces this one: it is recursive, has external references, or allows any names or
 * values.
 */
export function convertSchema(schema: unknown): GrammarSchema | undefined {
  const conversion = new Conversion(definitionsOf(schema));
  const converted = conversion.convertNode(schema);
  if (!conversion.isConvertible || isRecursive(conversion.references)) return undefined;
  const { moved, optionalProperties, unions } = conversion;
  return { schema: converted, moved: [...moved], optionalProperties, unions };
}

/** Keywords that keep their meaning and hold no schema. */
const keptKeywords = new Set(['type', 'title', 'description', 'required']);
const supportedFormats = new Set(
  'date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '),
) as ReadonlySet<unknown>;
/** Look-around, back references and word boundaries. */
const unsupportedPattern = /\(\?(?!:)|\\[1-9bBk]/;
/** They identify the document and constrain nothing. */
const ignoredKeywords = new Set(['$schema', '$id', '$anchor', '$comment']);
/** Only binding keywords are reported, so that a client writes no names of its own into a header. */
const bindingKeywords = new Set(
  (
    'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern format minItems maxItems ' +
    'uniqueItems contains minContains maxContains minProperties maxProperties propertyNames patternProperties ' +
    'dependentRequired dependentSchemas unevaluatedProperties unevaluatedItems not if then else'
  ).split(' '),
);
const definitionLists = ['$defs', 'definitions'];
const referencePattern = /^#\/(?:\$defs|definitions)\/([^/]+)$/;

const definitionsOf = (schema: unknown): Set<string> =>
  new Set(
    definitionLists.flatMap((list) =>
      isRecord(schema) && isRecord(schema[list]) ? Object.keys(schema[list]) : [],
    ),
  );

/** The conversion of one schema. The results are complete once its root was converted. */
class Conversion {
  isConvertible = true;
  readonly moved = new Set<string>();
  optionalProperties = 0;
  unions = 0;
  /** The definitions that each definition refers to. */
  readonly references = new Map<string, Set<string>>();
  readonly #definitions: ReadonlySet<string>;
  #definition: string | undefined;

  constructor(definitions: ReadonlySet<string>) {
    this.#definitions = definitions;
  }

  convertNode(schema: unknown): JsonRecord {
    if (!isRecord(schema)) return this.#giveUp();
    if (typeof schema['$ref'] === 'string') return this.#convertReference(schema, schema['$ref']);
    const { allOf } = schema;
    // A single schema in `allOf` replaces its parent: generators wrap a reference in it to describe it.
    if (Array.isArray(allOf) && allOf.length === 1 && isRecord(allOf[0])) {
      const { allOf: _, ...rest } = schema;
      return this.convertNode({ ...allOf[0], ...rest });
    }
    const converted: JsonRecord = {};
    const described: string[] = [];
    for (const [keyword, value] of Object.entries(schema)) {
      if (this.#keepsKeyword(converted, keyword, value) || ignoredKeywords.has(keyword)) continue;
      if (bindingKeywords.has(keyword)) this.moved.add(keyword);
      described.push(`${keyword}: ${JSON.stringify(value)}`);
    }
    this.#closeObject(converted, schema);
    if (Array.isArray(schema['type'])) this.unions += 1;
    if (!['type', 'enum', 'const', 'anyOf', 'allOf'].some((keyword) => keyword in converted)) this.#giveUp();
    if (described.length === 0) return converted;
    const { description } = schema;
    const texts = [...(typeof description === 'string' ? [description] : []), described.join(', ')];
    return { ...converted, description: texts.join('\n') };
  }

  /** Returns true if the keyword is sent, unchanged or with its schemas converted. Changes `converted`. */
  #keepsKeyword(converted: JsonRecord, keyword: string, value: unknown): boolean {
    if (keptKeywords.has(keyword)) converted[keyword] = value;
    else if (keyword === 'enum' || keyword === 'const') {
      if ([value].flat().some((each) => typeof each === 'object' && each !== null)) this.#giveUp();
      converted[keyword] = value;
    } else if (definitionLists.includes(keyword)) converted[keyword] = this.#convertDefinitions(value);
    else if (keyword === 'properties') converted[keyword] = this.#convertProperties(value);
    else if (keyword === 'items') converted[keyword] = this.convertNode(value);
    else if (keyword === 'anyOf' || keyword === 'oneOf') this.#convertUnion(converted, keyword, value);
    else if (keyword === 'allOf') converted[keyword] = this.#convertAllOf(value);
    else if (keyword === 'prefixItems') this.#giveUp();
    else if (keyword === 'format' && supportedFormats.has(value)) converted[keyword] = value;
    else if (keyword === 'pattern' && typeof value === 'string' && !unsupportedPattern.test(value))
      converted[keyword] = value;
    else if (keyword === 'minItems' && (value === 0 || value === 1)) converted[keyword] = value;
    else return keyword === 'additionalProperties';
    return true;
  }

  /** Every object lists all its properties. Changes `converted`. */
  #closeObject(converted: JsonRecord, schema: JsonRecord): void {
    const { type, properties, additionalProperties: others } = schema;
    if (![type].flat().includes('object') && !(type === undefined && isRecord(properties))) return;
    const names = isRecord(properties) ? Object.keys(properties) : [];
    const isOpen = others === true || isRecord(others);
    // A closed object allows a subset of an open one, but an object without properties could only be empty.
    if (names.length === 0 && (isOpen || (others === undefined && !isRecord(properties)))) this.#giveUp();
    if (isOpen) this.moved.add('additionalProperties');
    const required = Array.isArray(schema['required']) ? schema['required'] : [];
    this.optionalProperties += names.filter((name) => !required.includes(name)).length;
    converted['type'] ??= 'object';
    converted['additionalProperties'] = false;
  }

  #convertUnion(converted: JsonRecord, keyword: string, value: unknown): void {
    if (!Array.isArray(value) || converted['anyOf']) this.#giveUp();
    if (keyword === 'oneOf') this.moved.add(keyword);
    this.unions += 1;
    converted['anyOf'] = (Array.isArray(value) ? value : []).map((each) => this.convertNode(each));
  }

  /** Closed objects would exclude each other. */
  #convertAllOf(value: unknown): unknown[] {
    const schemas = Array.isArray(value) ? value.map((each) => this.convertNode(each)) : [];
    if (schemas.some((part) => '$ref' in part || 'additionalProperties' in part)) this.#giveUp();
    return schemas;
  }

  #convertProperties(value: unknown): JsonRecord {
    if (!isRecord(value)) return this.#giveUp();
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.convertNode(each)]));
  }

  #convertDefinitions(value: unknown): JsonRecord {
    if (!isRecord(value)) return this.#giveUp();
    const outer = this.#definition;
    const converted = Object.entries(value).map(([name, each]) => {
      this.#definition = name;
      return [name, this.convertNode(each)];
    });
    this.#definition = outer;
    return Object.fromEntries(converted) as JsonRecord;
  }

  /** The vendor accepts nothing beside a reference. */
  #convertReference(schema: JsonRecord, target: string): JsonRecord {
    const [, name] = referencePattern.exec(target) ?? [];
    if (name === undefined || !this.#definitions.has(name)) return this.#giveUp();
    for (const keyword of Object.keys(schema)) if (bindingKeywords.has(keyword)) this.moved.add(keyword);
    if (this.#definition !== undefined) {
      const known = this.references.get(this.#definition) ?? new Set();
      this.references.set(this.#definition, known.add(name));
    }
    const lists = definitionLists.filter((list) => list in schema);
    return {
      $ref: target,
      ...Object.fromEntries(lists.map((list) => [list, this.#convertDefinitions(schema[list])])),
    };
  }

  #giveUp(): JsonRecord {
    this.isConvertible = false;
    return {};
  }
}

function isRecursive(references: ReadonlyMap<string, ReadonlySet<string>>): boolean {
  const visited = new Set<string>();
  const hasCycle = (name: string, path: ReadonlySet<string>): boolean => {
    if (path.has(name)) return true;
    if (visited.has(name)) return false;
    const longer = new Set([...path, name]);
    const found = [...(references.get(name) ?? [])].some((next) => hasCycle(next, longer));
    visited.add(name);
    return found;
  };
  return [...references.keys()].some((name) => hasCycle(name, new Set()));
}
