import * as z from 'zod/mini';
import { explainIssues } from '../../wire/json.ts';
import { decimalText, parseYuan, type NanoYuan } from '../../billing/price.ts';
import { modelNamePattern } from '../../wire/ids.ts';

/** A row that is used, with a warning if there is one; or the reason why it is not used. */
export type RowReading<Row> = { row: Row; warning?: string } | RowProblem;

export interface RowProblem {
  /** The text for operators: what was found and what is wanted. */
  problem: string;
  /** true: the row's switch is off or unreadable, so no earlier version of the row may be used either. */
  off?: boolean;
}

/**
 * Reads one row of a table as the SDK's document client returns it (numbers, JavaScript sets). Attributes
 * that start with `_` are notes and marks; they are ignored.
 */
export function readRow<Row>(
  schema: z.ZodMiniType<Row>,
  raw: unknown,
  warningsOf: (row: Row) => string[] = () => [],
): RowReading<Row> {
  const row = plainRow(raw);
  const parsed = z.safeParse(schema, row);
  if (!parsed.success) return { problem: explainIssues(parsed.error.issues, row, schema) };
  return acceptRow(parsed.data, warningsOf(parsed.data));
}

export const acceptRow = <Row>(row: Row, warnings: string[]): RowReading<Row> =>
  warnings.length > 0 ? { row, warning: warnings.join('; ') } : { row };

/**
 * NULL is what tools write for nothing, so an attribute that is NULL is absent; but whoever wrote it into a switch may
 * have meant off, and absence is on. There it is a mistake, and mistakes there are off.
 */
const isAbsent = (name: string, value: unknown): boolean => value === null && !switches.has(name);
const switches: ReadonlySet<string> = new Set(['state', 'enabled']);

/** One attribute of a row of unknown shape; undefined if it is absent. */
export function attributeOf(raw: unknown, name: string): unknown {
  if (typeof raw !== 'object' || raw === null || !Object.hasOwn(raw, name)) return undefined;
  const value = (raw as Record<string, unknown>)[name];
  return isAbsent(name, value) ? undefined : value;
}

/** One attribute of a row of unknown shape, for a sentence; empty if it is no text. */
export function textOf(raw: unknown, name: string): string {
  const value = attributeOf(raw, name);
  return typeof value === 'string' ? value : '';
}

/** A row as JSON, without notes and marks. A string set has no order, so it becomes a sorted list. */
export function plainRow(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return plainValue(raw);
  const present = Object.entries(raw).filter(
    ([name, value]) => !name.startsWith('_') && !isAbsent(name, value),
  );
  return Object.fromEntries(present.map(([name, value]) => [name, plainValue(value)]));
}

/**
 * Values that JSON cannot hold are not converted, and no schema accepts them. A member of a map that is NULL is absent.
 * @param keepsNull in what a row sets in requests, null is a value
 */
export function plainValue(value: unknown, keepsNull = false): unknown {
  if (value instanceof Set && [...value].every((item) => typeof item === 'string'))
    return [...(value as Set<string>)].toSorted();
  if (Array.isArray(value)) return value.map((item) => plainValue(item, keepsNull));
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  const members = Object.entries(value).filter(([, inner]) => keepsNull || inner !== null);
  return Object.fromEntries(
    members.map(([name, inner]) => [name, plainValue(inner, keepsNull || name === 'set')]),
  );
}

// Schemas of attributes that the ops-edited tables share. Rows are typed by hand in a console, so a number may arrive as
// "5", a flag as "true", and a list of strings as a string set; everything else is refused with a reason.
//
// Every message here is the end of a sentence that `explainIssues` (wire/json.ts) starts: `priority: found "high", expected <message>`.

const truth = /^\s*(true|false)\s*$/i;
const isoTime = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;

const wantedTime = 'an ISO 8601 time with a time zone, such as 2026-12-31T00:00:00Z';
const wantedNames = 'a list (or a string set) of model names, such as ["gpt-4o"]';
const wantedName = 'a model name: 1 to 128 of the characters A-Z a-z 0-9 . _ : / @ -';

export const text = z.string('a text').check(z.trim(), z.minLength(1, 'a text that is not empty'));

/** The key of a row. It is not trimmed: blanks around it are refused, because no console shows them. */
export const rowId = z
  .string('a text')
  .check(z.regex(/^\S(.*\S)?$/, 'a text on one line, without spaces around it'));

/** The name of an account. Parts of a busy one are kept under `<account>#<part>`, and its sums under keys of 1,024 bytes at most. */
export const accountName = rowId.check(
  z.maxLength(300, 'a name of at most 300 characters'),
  z.refine((name) => !/#\d+$/.test(name), 'a name that does not end in # and digits'),
);

/** A number that may be written as text. `accepts` bounds it; `wanted` describes what is accepted. */
function numberThat(wanted: string, accepts: (value: number) => boolean) {
  const written = z.union([z.number(), z.string().check(z.regex(decimalText, wanted))], wanted);
  const read = z.transform((value: number | string) => Number(value));
  return z.pipe(z.pipe(written, read), z.number(wanted).check(z.refine(accepts, wanted)));
}

export const amount = numberThat(
  'a number of 0 or more, with a decimal point, such as 0.018',
  (value) => value >= 0,
);
export const integer = numberThat('a whole number', Number.isSafeInteger);
export const positiveInteger = integerBetween(1, Number.MAX_SAFE_INTEGER, 'a whole number of 1 or more');

export function integerBetween(least: number, most: number, wanted: string) {
  return numberThat(wanted, (value) => Number.isSafeInteger(value) && value >= least && value <= most);
}

export const positiveNumber = numberThat('a number of more than 0', (value) => value > 0);
export const numberBetween = (least: number, most: number) =>
  numberThat(`a number from ${least} to ${most}`, (value) => value >= least && value <= most);

/** A duration: more than 0, at most `most`. */
const durationUpTo = (unit: string) => (most: number) =>
  numberThat(`a number of ${unit}, more than 0 and at most ${most}`, (value) => value > 0 && value <= most);
export const secondsUpTo = durationUpTo('seconds');
export const daysUpTo = durationUpTo('days');

const yuanLimit = 10n ** 21n;

/** An amount typed in yuan, converted exactly to nano-yuan, of less than a trillion. */
export const yuanThat = (wanted: string, accepts: (amount: NanoYuan) => boolean) =>
  z.pipe(
    z.pipe(
      z.union([z.number(), z.string()], wanted),
      z.transform((written: number | string) => parseYuan(written)),
    ),
    z
      .bigint(wanted)
      .check(z.refine((value) => accepts(value) && value < yuanLimit && value > -yuanLimit, wanted)),
  );

const wantedFlag = 'true or false';
const toFlag = z.transform((value: boolean | string) => String(value).trim().toLowerCase() === 'true');
export const flag = z.pipe(
  z.union([z.boolean(), z.string().check(z.regex(truth, wantedFlag))], wantedFlag),
  toFlag,
);

export const textList = z.array(text, 'a list (or a string set) of texts');

export const modelName = z.string(wantedName).check(z.trim(), z.regex(modelNamePattern, wantedName));
export const modelList = z.array(modelName, wantedNames);

export const listOf = <Item extends z.ZodMiniType>(item: Item, most: number, wanted: string) =>
  z.array(item, wanted).check(z.minLength(1, wanted), z.maxLength(most, wanted));

/** A value that is copied into a request body unchanged. */
export const jsonValue = z.custom(isJson, 'a value that JSON can hold (a list instead of a set)');

function isJson(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every(isJson);
  if (typeof value !== 'object' || value instanceof Set || value instanceof Uint8Array) return false;
  return Object.values(value).every(isJson);
}

/** A map whose members may all be absent. A set and bytes have none of them either, and are no such map. */
export function optionMap<Shape extends z.core.$ZodLooseShape>(shape: Shape, wanted?: string) {
  const map = z.strictObject(shape, wanted);
  type Mapped = z.ZodMiniType<z.output<typeof map>, z.input<typeof map>>;
  // As a check before the map it would have no form in the JSON schema of options.
  const plainOnly = z.transform((value: unknown, context) => {
    if (!isPlainObject(value)) context.issues.push({ code: 'custom', input: value, message: wanted });
    return value;
  });
  return z.pipe(plainOnly, map) as unknown as Mapped;
}

const isPlainObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** An ISO 8601 date (read as 00:00 UTC) or time with its zone, converted to epoch milliseconds. */
export const time = z.pipe(
  z.string(wantedTime).check(z.regex(isoTime, wantedTime), z.refine(isOnTheCalendar, wantedTime)),
  z.transform((value: string) => Date.parse(value)),
);

/** Whether the date exists. Date.parse reads 30 February as a day in March; here it is refused. */
function isOnTheCalendar(value: string): boolean {
  const day = value.slice(0, 10);
  const midnight = Date.parse(day);
  return (
    !Number.isNaN(midnight) &&
    !Number.isNaN(Date.parse(value)) &&
    new Date(midnight).toISOString().startsWith(day)
  );
}
