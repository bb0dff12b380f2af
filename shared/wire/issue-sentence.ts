/** Turns the issues of a row's schema into a sentence for the operator who typed the row. */
import type * as z from 'zod/mini';
import { valueAt } from './json-record.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

const shownCharactersMax = 60;
const sentencesMax = 8;
/** `sk-...`, or letters and digits longer than any word: a key pasted into the wrong attribute. */
export const looksSecret = /sk-|[A-Za-z0-9]{20,}/;
/** Attributes that may hold credentials or customers' texts. Their values are described, never quoted. */
export const neverQuoted: ReadonlySet<PropertyKey> = new Set(['secret', 'params', 'hash']);

/**
 * One text for all issues of a row: `priority: found "high", wanted a whole number; ...`.
 * @param row the row as read from the table; the text quotes its values
 */
export function explainIssues(issues: readonly Issue[], row: unknown): string {
  // One value may break several rules that want the same.
  const all = [...new Set(issues.map((issue) => explainIssue(issue, row)))];
  const sentences = all.slice(0, sentencesMax);
  const more = all.length - sentences.length;
  return [...sentences, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}

function explainIssue(issue: Issue, row: unknown): string {
  if (issue.code === 'unrecognized_keys') {
    const names = issue.keys.map((key) => writePath([...issue.path, key])).join(', ');
    return `${names}: found, but not known here (misspelt? a note's name starts with _)`;
  }
  if (issue.path.length === 0) return `found ${describe(row)}, wanted a row of attributes`;
  const where = writePath(issue.path);
  if (issue.code === 'invalid_key') return `${where}: found this name, wanted ${wantedOf(issue.issues[0])}`;
  const found = valueAt(row, issue.path);
  return `${where}: found ${quotable(issue.path) ? describe(found) : kindOf(found)}, wanted ${wantedOf(issue)}`;
}

const wantedOf = (issue: Issue | undefined): string => issue?.message ?? 'another value';
const quotable = (path: Path): boolean => !neverQuoted.has(path[0] ?? '');

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
