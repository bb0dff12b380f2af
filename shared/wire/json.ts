/** Reads and bounds JSON from outside, and explains why a row does not fit its schema. */
import type * as z from 'zod/mini';
import { findNearestName } from './nearest-name.ts';

/** A JSON object. JSON from outside passes `isRecord` or `asRecord` before its fields are read. */
export type JsonRecord = Record<string, unknown>;

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const asRecord = (value: unknown): JsonRecord => (isRecord(value) ? value : {});

export const listIn = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

export const recordsIn = (value: unknown): JsonRecord[] => listIn(value).filter(isRecord);

/** A text as it is, any other value as JSON: some servers and clients send arguments as the object itself. */
export function jsonText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

/**
 * Turns the arguments of a call into a JSON object: an empty text, null and an empty list become `{}`, and an object that was
 * encoded as a text is decoded. Everything else is returned unchanged, objects byte for byte.
 */
export function unwrapArguments(text: string): string {
  const begun = text.trimStart();
  if (begun.startsWith('{')) return text;
  const value = begun === '' ? null : parseJson(begun);
  const isNone = value === null || (Array.isArray(value) && value.length === 0);
  if (isNone) return '{}';
  const inner = typeof value === 'string' ? unwrapArguments(value) : '';
  return isRecord(parseJson(inner)) ? inner : text;
}

export const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Only the fields that have a value: a null of the OpenAI API means that the field is absent. */
export const removeNulls = (source: object): JsonRecord =>
  Object.fromEntries(Object.entries(source).filter(([, value]) => value !== null && value !== undefined));

export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
  return valueAt((value as Record<PropertyKey, unknown>)[step], rest);
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A text of a URL. One that is escaped wrong is as it is. */
export function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;

interface JsonBounds {
  levelsMax: number;
  /** Maximum number of values, counted by brackets and commas. */
  valuesMax: number;
}

/**
 * The first limit that the text exceeds, or how many values it has. Checked before parsing, because depth and number of
 * values can exhaust memory within the size limit. Takes linear time; the text need not be valid JSON.
 */
export function checkBounds(
  text: string,
  { levelsMax, valuesMax }: JsonBounds,
): 'levels' | 'values' | number {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === quote) {
      at = endOfString(text, at);
    } else if (character === 0x5b || character === 0x7b) {
      depth += 1;
      values += 1;
      if (depth > levelsMax) return 'levels';
    } else if (character === 0x5d || character === 0x7d) {
      depth -= 1;
    } else if (character === comma) {
      values += 1;
    }
    if (values > valuesMax) return 'values';
  }
  return values;
}

/**
 * The index of the quote that closes the string opened at `start`; the text's length when it is not closed.
 */
function endOfString(text: string, start: number): number {
  // indexOf is much faster than a loop over an inline image of several megabytes.
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

/** JSON with sorted fields, so that equal values give equal texts. Undefined stays undefined. */
export function canonicalJson(value: object): string;
export function canonicalJson(value: unknown): string | undefined;
export function canonicalJson(value: unknown): string | undefined {
  return JSON.stringify(value, (_name, part: unknown) => (isPlainObject(part) ? sortFields(part) : part));
}

/** Compares texts by code units, independent of the machine's locale, and numbers by value. */
export function compareCodeUnits(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

const sortFields = (value: object): object =>
  Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => compareCodeUnits(a, b)));

export const isPlainObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;

// Turns the issues of a row's schema into a sentence for the operator who typed the row.

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

const shownCharactersMax = 60;
const sentencesMax = 8;
/** `sk-...`, or letters and digits longer than any word: a key pasted into the wrong attribute. */
export const looksSecret = /sk-|[A-Za-z0-9]{20,}/;
/** Attributes that may hold credentials or customers' texts. Their values are described, never quoted. */
export const neverQuoted: ReadonlySet<PropertyKey> = new Set(['secret', 'params', 'hash']);
/** Parts of these attributes that hold only words of a list. */
const alwaysQuoted: ReadonlySet<PropertyKey> = new Set(['efforts', 'model_rules']);

/**
 * One text for all issues of a row: `priority: found "high", expected a whole number; ...`.
 * @param row the row as read from the table; the text quotes its values
 * @param schema what it was read by: of a misspelt name the text says the nearest
 */
export function explainIssues(issues: readonly Issue[], row: unknown, schema: z.core.$ZodType): string {
  // One value may break several rules that want the same.
  const all = [...new Set(issues.map((issue) => explainIssue(issue, row, schema)))];
  const sentences = all.slice(0, sentencesMax);
  const more = all.length - sentences.length;
  return [...sentences, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

function explainIssue(issue: Issue, row: unknown, schema: z.core.$ZodType): string {
  if (issue.code === 'unrecognized_keys') {
    const names = issue.keys.map((key) => writePath([...issue.path, key])).join(', ');
    const known = namesAt(schema, issue.path);
    const near = new Set(issue.keys.flatMap((key) => findNearestName(key, known) ?? []));
    const meant = near.size === 0 ? 'misspelled?' : `did you mean ${[...near].join(', ')}?`;
    return `${names}: unknown attribute (${meant} names of notes start with _)`;
  }
  if (issue.path.length === 0) return `found ${describe(row)}, expected a row of attributes`;
  const where = writePath(issue.path);
  if (issue.code === 'invalid_key') return `${where}: found this name, expected ${wantedOf(issue.issues[0])}`;
  const found = valueAt(row, issue.path);
  const words = isQuotable(issue.path) ? describe(found) : kindOf(found);
  return `${where}: ${found === undefined ? 'missing' : `found ${words}`}, expected ${wantedOf(issue)}`;
}

/** The names that the map at a path of a schema may have. */
function namesAt(schema: z.core.$ZodType | undefined, path: Path): readonly string[] {
  const { def } = (schema as z.core.$ZodTypes | undefined)?._zod ?? {};
  const [step, ...rest] = path;
  if (def?.type === 'object')
    return step === undefined ? Object.keys(def.shape) : namesAt(def.shape[String(step)], rest);
  if (def?.type === 'array') return namesAt(def.element, rest);
  if (def?.type === 'record') return namesAt(def.valueType, rest);
  if (def?.type === 'pipe') return namesAt(def.out, path);
  return def && 'innerType' in def ? namesAt(def.innerType, path) : [];
}

const wantedOf = (issue: Issue | undefined): string => issue?.message ?? 'another value';
const isQuotable = ([name = '', part = '']: Path): boolean =>
  !neverQuoted.has(name) || alwaysQuoted.has(part);

/** A path such as `items[0].models[2]`. A name that looks like a pasted key is not shown. */
function writePath(path: Path): string {
  return path
    .map((step, position) => {
      if (typeof step === 'number') return `[${step}]`;
      const name = looksSecret.test(String(step)) ? '(a name not shown)' : shorten(String(step));
      return position === 0 ? name : `.${name}`;
    })
    .join('');
}

/** Describes a value: quoted if it is short and not a secret, otherwise only its kind. */
function describe(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return describeText(value);
  const items = value instanceof Set ? [...value] : value;
  if (Array.isArray(items) && items.every((item) => typeof item === 'string' || typeof item === 'number')) {
    const listed = JSON.stringify(items);
    return looksSecret.test(listed) ? 'a list that looks like it holds a secret' : shorten(listed);
  }
  return kindOf(value);
}

function describeText(value: string): string {
  if (value === '') return 'an empty text';
  if (looksSecret.test(value)) return 'a text that looks like a secret (not shown)';
  return shorten(JSON.stringify(value));
}

function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (value instanceof Set) return 'a set';
  if (value instanceof Uint8Array) return 'binary data';
  if (typeof value === 'string') return 'a text';
  return typeof value === 'object' ? 'a map' : `a ${typeof value}`;
}

const shorten = (value: string): string =>
  value.length > shownCharactersMax ? `${value.slice(0, shownCharactersMax)}…` : value;

/** Lists the texts whose condition holds: `listTexts(count > 0 && 'has some')`. */
export const listTexts = (...texts: readonly (string | false | undefined)[]): string[] =>
  texts.filter((text) => typeof text === 'string');
