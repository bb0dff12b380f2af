/**
 * Reads a row as people type it in a console, and has the schemas of attributes that several tables share. A number may arrive as "5", a
 * flag as "true", a list as a string set; everything else is refused with a reason.
 */
import * as z from 'zod/mini';
import { explainIssues, isPlainObject } from '../../wire/json.ts';
import { decimalText, parseYuan, type NanoYuan } from '../../billing/money.ts';
import { modelNamePattern } from '../../wire/ids.ts';

export type RowReading<Row> = { row: Row; warning?: string } | RowProblem;

export interface RowProblem {
  /** For operators: what was found and what is wanted. */
  problem: string;
  /** The row's switch is off or unreadable, so no earlier version of the row may be used either. */
  off?: boolean;
}

/** Reads a row as the SDK's document client returns it. Ignores attributes that start with `_`. */
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

/** Returns undefined for an invalid row, for callers that don't report the reason. */
export const parseRow = <Row>(schema: z.ZodMiniType<Row>, raw: unknown): Row | undefined =>
  z.safeParse(schema, plainRow(raw)).data;

export const acceptRow = <Row>(row: Row, warnings: string[]): RowReading<Row> =>
  warnings.length > 0 ? { row, warning: warnings.join('; ') } : { row };

/**
 * Tools write NULL for nothing, so NULL counts as absent. But in a switch NULL may mean off, and an absent switch is on. So there it is
 * a mistake, and a mistake in a switch is off.
 */
const isAbsent = (name: string, value: unknown): boolean => value === null && !switches.has(name);
const switches: ReadonlySet<string> = new Set(['state', 'enabled']);

export function attributeOf(raw: unknown, name: string): unknown {
  if (typeof raw !== 'object' || raw === null || !Object.hasOwn(raw, name)) return undefined;
  const value = (raw as Record<string, unknown>)[name];
  return isAbsent(name, value) ? undefined : value;
}

/** Returns an empty text if the attribute is not a text. */
export function textOf(raw: unknown, name: string): string {
  const value = attributeOf(raw, name);
  return typeof value === 'string' ? value : '';
}

/** Texts that people read, and values that requests carry: their spaces may be intentional. */
const freeTexts: ReadonlySet<string> = new Set(['name', 'note', 'reason', 'set']);

/** Warns about names with spaces at an end, which no console shows. Lists ignore them, but maps look up the name as it is written. */
export function findPaddedNames(value: unknown, path = ''): string[] {
  if (typeof value === 'string')
    return isPadded(value) && path !== ''
      ? [`${path}: ${JSON.stringify(value)} starts or ends with spaces`]
      : [];
  if (Array.isArray(value)) return value.flatMap((each, at) => findPaddedNames(each, `${path}[${at}]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(plainRow(value) as object).flatMap(([name, inner]) => {
    const own = isPadded(name)
      ? [`${path}: the name ${JSON.stringify(name)} starts or ends with spaces`]
      : [];
    return freeTexts.has(name) ? own : own.concat(findPaddedNames(inner, path ? `${path}.${name}` : name));
  });
}

const isPadded = (name: string): boolean => name !== name.trim();

/** Converts a row to JSON without attributes that start with `_`. A string set becomes a sorted list. */
export function plainRow(raw: unknown): unknown {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return plainValue(raw);
  const present = Object.entries(raw).filter(
    ([name, value]) => !name.startsWith('_') && !isAbsent(name, value),
  );
  return Object.fromEntries(present.map(([name, value]) => [name, plainValue(value)]));
}

/**
 * Leaves values that JSON cannot represent as they are: no schema accepts them.
 * @param keepsNull in fields that a row sets in requests, null is a value
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

// Every message is the end of a sentence of `explainIssues` (wire/json.ts): `priority: found "high", expected <message>`.

const truth = /^\s*(true|false)\s*$/i;
const isoTime = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2}))?$/;

const wantedTime = 'an ISO 8601 time with a time zone, such as 2026-12-31T00:00:00Z';
const wantedNames = 'a list (or a string set) of model names, such as ["gpt-4o"]';
const wantedName = 'a model name: 1 to 128 of the characters A-Z a-z 0-9 . _ : / @ -';

export const text = z.string('a text').check(z.trim(), z.minLength(1, 'a text that is not empty'));

/** Refuses blanks around the key of a row, because no console shows them. */
export const rowId = z
  .string('a text')
  .check(z.regex(/^\S(.*\S)?$/, 'a text on one line, without spaces around it'));

/** The shards of an account are kept under `<account>#<shard>`, and its sums under keys of at most 1,024 bytes. */
export const accountName = rowId.check(
  z.maxLength(300, 'a name of at most 300 characters'),
  z.refine((name) => !/#\d+$/.test(name), 'a name that does not end in # and digits'),
);

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

/** Shared by the budgets of keys and accounts. */
export const periodShape = { amount, period: z.enum(['day', 'month'], '"day" or "month"') };

export const positiveNumber = numberThat('a number of more than 0', (value) => value > 0);
export const numberBetween = (least: number, most: number) =>
  numberThat(`a number from ${least} to ${most}`, (value) => value >= least && value <= most);

const durationUpTo = (unit: string) => (most: number) =>
  numberThat(`a number of ${unit}, more than 0 and at most ${most}`, (value) => value > 0 && value <= most);
export const secondsUpTo = durationUpTo('seconds');
export const daysUpTo = durationUpTo('days');

const yuanLimit = 10n ** 21n;

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

export const jsonValue = z.custom(isJson, 'a value that JSON can hold (a list instead of a set)');

function isJson(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every(isJson);
  if (typeof value !== 'object' || value instanceof Set || value instanceof Uint8Array) return false;
  return Object.values(value).every(isJson);
}

/** An object with optional fields. A Set or bytes would also match, so both are refused. */
export function optionMap<Shape extends z.core.$ZodLooseShape>(shape: Shape, wanted?: string) {
  const map = z.strictObject(shape, wanted);
  type Mapped = z.ZodMiniType<z.output<typeof map>, z.input<typeof map>>;
  // A check would have no form in the JSON schema of options.
  const plainOnly = z.transform((value: unknown, context) => {
    if (!isPlainObject(value)) context.issues.push({ code: 'custom', input: value, message: wanted });
    return value;
  });
  return z.pipe(plainOnly, map) as unknown as Mapped;
}

/** A date means 00:00 UTC. Converts to epoch milliseconds. */
export const time = z.pipe(
  z.string(wantedTime).check(z.regex(isoTime, wantedTime), z.refine(isOnTheCalendar, wantedTime)),
  z.transform((value: string) => Date.parse(value)),
);

const wantedDate = 'a date such as "2026-10-01"';
/** A day of some calendar, without a time zone. */
export const date = z
  .string(wantedDate)
  .check(z.regex(/^\d{4}-\d{2}-\d{2}$/, wantedDate), z.refine(isOnTheCalendar, wantedDate));

/** Date.parse would read 30 February as a day in March. */
function isOnTheCalendar(value: string): boolean {
  const day = value.slice(0, 10);
  const midnight = Date.parse(day);
  return (
    !Number.isNaN(midnight) &&
    !Number.isNaN(Date.parse(value)) &&
    new Date(midnight).toISOString().startsWith(day)
  );
}
