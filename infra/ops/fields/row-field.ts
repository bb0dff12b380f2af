/**
 * Fields of rows: what each attribute is called, what helps whoever writes it, how it is shown, and what becomes of what is written.
 * The console's forms, CSV of many rows and the commands `new` and `set` iterate the same tables of fields, one a row kind.
 */
import { parseDecimal } from '../../../shared/billing/money.ts';
import { attributeOf, plainRow } from '../../../shared/config/rows/read-row.ts';
import { usageFailure } from '../../../shared/operate/plan.ts';
import type { RawRow } from '../../../shared/operate/operator-ports.ts';
import { asRecord, isRecord, parseJson } from '../../../shared/wire/json.ts';
import { formatCell } from '../markup.ts';
import { formatLines, parseLines } from './map-lines.ts';

export interface Field {
  name: string;
  /** Another name that messages of plans use. */
  alsoNamed?: string;
  label: string;
  kind?: 'text' | 'area' | 'choice' | 'hidden' | 'check';
  value?: string | undefined;
  /** With code between backquotes. */
  help?: string;
  choices?: readonly (readonly [value: string, words: string])[];
  required?: boolean;
  width?: 'third';
  /** The fields of a group appear below its title, collapsed while all are empty. */
  group?: string;
  /** The keyboard that a phone shows. */
  input?: 'decimal' | 'numeric' | 'email';
  placeholder?: string;
  /** A mark of the relay at this attribute of the row: `_problem` or `_warning`. */
  mark?: { kind: 'bad' | 'warning'; words: string } | undefined;
  /** Its path in messages, if it differs from its name. */
  place?: string;
  /** The row of fields that it belongs to. */
  entry?: { list: string; at: number; number: number; noun: string; isAdded: boolean } & Pick<
    Entries,
    'about' | 'isOpen'
  >;
}

/**
 * A form field of a row. `format` and `parse` convert its attribute, by default as text. Empty text removes the attribute.
 * A dotted name is a member of an attribute: `budget.amount`, `items.0.models`.
 */
export interface RowField extends Omit<Field, 'value'> {
  format?: (value: unknown, row: RawRow) => string;
  parse?: (text: string, field: ReadField) => unknown;
  /** Adds the unit to the formatted text in a review of changes. */
  show?: (text: string, row: RawRow) => string;
  /** In a form: the entries of the list or map. */
  entries?: Entries;
}

/** A list of maps, shown as rows of fields. */
export interface Entries {
  /** Named within an entry. */
  fields: readonly RowField[];
  noun: string;
  about?: string | undefined;
  /** A new entry goes above the others. */
  addsFirst?: boolean;
  /** Shown even while it is empty. */
  isOpen?: boolean | undefined;
  /** Set if the attribute is a map: the name of the field that holds the key. */
  key?: string;
  /** Each key has a list of entries. */
  isGrouped?: boolean;
  /** Convert an entry that is no map. */
  unpack?: (value: unknown) => RawRow;
  pack?: (entry: RawRow) => unknown;
}

type ReadField = (name: string) => string;

type More = Partial<RowField>;

/** A field of a third of the width. */
export const makeShort = (name: string, label: string, help: string, more: More = {}): RowField => ({
  name,
  label,
  help,
  width: 'third',
  ...more,
});

export const makeNumber = (name: string, label: string, help: string, more: More = {}): RowField =>
  makeShort(name, label, help, { input: 'decimal', parse: parseTypedNumber, ...more });

export const makeCount = (name: string, label: string, help: string, more: More = {}): RowField =>
  makeNumber(name, label, help, { input: 'numeric', ...more });

const makeArea = (name: string, label: string, help: string, more: More): RowField => ({
  name,
  label,
  help,
  kind: 'area',
  ...more,
});

export const makeNames = (
  name: string,
  label: string,
  help = 'Separated by commas or lines.',
  more: More = {},
): RowField =>
  makeArea(name, label, help, {
    ...(name.endsWith('models') && { placeholder: 'gpt-4o' }),
    format: (value) => formatCell(value).replaceAll(', ', '\n'),
    parse: parseNames,
    ...more,
  });

/** @param none the words for no choice, if that is one */
export const makeChoice = (
  name: string,
  label: string,
  choices: Readonly<Record<string, string>>,
  none?: string,
  more: More = {},
): RowField => ({
  name,
  label,
  kind: 'choice',
  choices: [...(none === undefined ? [] : [['', none] as const]), ...Object.entries(choices)],
  ...more,
});

/** @param none what nothing typed means */
export const makeFlag = (name: string, label: string, none: string, more: More = {}): RowField =>
  makeChoice(name, label, { yes: 'yes', no: 'no' }, none, {
    format: (value) => (value === undefined ? '' : value === true ? 'yes' : 'no'),
    parse: parseFlag,
    ...more,
  });

/** As people and spreadsheets write it. What is neither stays as typed, for the row's schema to refuse. */
export const parseFlag = (text: string): boolean | string | undefined =>
  flags.get(text.toLowerCase()) ?? parseText(text);

const flags = new Map([
  ['yes', true],
  ['true', true],
  ['no', false],
  ['false', false],
]);

export const makeJson = (name: string, label: string, help: string, isList = false): RowField =>
  makeArea(name, label, help, {
    format: (value) => (value === undefined ? '' : JSON.stringify(value, replaceSet, 2)),
    parse(text) {
      const value = text === '' ? (isList ? [] : {}) : parseJson(text);
      // Without the parser's message, which quotes the text: it may contain a secret.
      if (!(isList ? Array.isArray(value) : isRecord(value)))
        throw usageFailure(
          `${name}: enter a JSON ${isList ? `list. ${help}` : 'object such as {"params": {...}}'}`,
        );
      return Object.keys(value as object).length === 0 ? undefined : value;
    },
  });

/** One name per line, or two for a map of maps: `gpt-5 sampling = none`. */
export const makeLines = (name: string, label: string, help: string, isNested = false): RowField =>
  makeArea(name, label, help, {
    format: (value) => formatLines(value, isNested),
    parse: (text) => parseLines(name, text, isNested),
  });

export const fillFields = (fields: readonly RowField[], row: RawRow): Field[] =>
  fields.map((field) =>
    Object.assign({}, field, { value: (field.format ?? formatCell)(readAttribute(row, field.name), row) }),
  );

export const readAttribute = (row: RawRow, name: string): unknown =>
  name.split('.').reduce((value: unknown, part) => attributeOf(value, part), row);

/** @param row what parts of an attribute without a field are taken from */
export const parseTypedRow = (fields: readonly RowField[], field: ReadField, row: RawRow = {}): RawRow => {
  const made = fields.reduce<unknown>(
    (before, { name, parse: read = parseText }) =>
      setAttribute(before, name.split('.'), read(field(name), field)),
    plainRow(row),
  );
  const names = new Set(fields.map(({ name }) => topOf(name)));
  return Object.fromEntries([...names].map((name) => [name, attributeOf(made, name)]));
};

/**
 * Parses typed texts by field name. Returns whole attributes; fields without a text keep the row's values.
 * Throws a usage failure if a field has no effect without another one.
 * @param texts `budget.amount` with `20`; empty: it is removed
 */
export function writeTypedRow(
  fields: readonly RowField[],
  texts: ReadonlyMap<string, string>,
  row: RawRow = {},
): RawRow {
  const before = new Map(fillFields(fields, row).map(({ name, value = '' }) => [name, value]));
  const written = new Set([...texts.keys()].map(topOf));
  const made = parseTypedRow(
    fields.filter(({ name }) => written.has(topOf(name))),
    (name) => texts.get(name) ?? before.get(name) ?? '',
    row,
  );
  for (const [name, text] of texts)
    if (name.includes('.') && text !== '' && readAttribute(made, name) === undefined) {
      const beside = fields.find((each) => topOf(each.name) === topOf(name))?.name;
      throw usageFailure(`${name}: set ${beside} as well`);
    }
  return made;
}

export const topOf = (name: string): string => name.split('.')[0] ?? '';

/** A map or a list with a part set; of a part that is undefined, without it, and undefined where nothing is left. */
export function setAttribute(
  whole: unknown,
  [part = '', ...rest]: readonly string[],
  value: unknown,
): unknown {
  const inner = rest.length === 0 ? value : setAttribute(attributeOf(whole, part), rest, value);
  if (/^\d+$/.test(part)) {
    const list = Array.isArray(whole) ? whole.map((each: unknown) => each) : [];
    list[Number(part)] = inner;
    // A hole stays until all parts are there: the numbers of those that follow must not move.
    return list.every((each) => each === undefined) ? undefined : list;
  }
  const { [part]: _, ...others } = asRecord(whole);
  const map = inner === undefined ? others : { ...others, [part]: inner };
  return Object.keys(map).length === 0 ? undefined : map;
}

/** Identifies the version of the row that the form showed; a row changed since is refused. */
export const createSeenField = (mark: string): Field => ({
  name: 'seen',
  label: '',
  kind: 'hidden',
  value: mark,
});

export const isReference = (text: string): boolean => /^(ssm|secretsmanager|env):/.test(text);

const replaceSet = (_: string, value: unknown): unknown => (value instanceof Set ? [...value] : value);

/** As typed: the row's schema says what is wrong with it. Empty: the attribute is removed. */
export const parseText = (text: string): string | undefined => (text === '' ? undefined : text);

/** Empty: the attribute is removed. A text that is no number stays one, for the row's schema to refuse. */
export function parseTypedNumber(text: string): number | string | undefined {
  if (text === '') return undefined;
  const number = Number(text);
  // JavaScript reads `0x1F` as one too, and 1e400 as one that no row can hold.
  return parseDecimal(text, 0) !== undefined && Number.isFinite(number) ? number : text;
}

/** Names apart by commas, blanks or lines. */
export const parseTypedList = (text: string): string[] => text.split(/[\s,]+/).filter((name) => name !== '');

/** Empty: the attribute is removed. */
export function parseNames(text: string): string[] | undefined {
  const names = parseTypedList(text);
  return names.length === 0 ? undefined : names;
}
