/**
 * Forms: each field with its label, its help and its error beside it; the fields of a row, and the row that was typed into them.
 * Works without script.
 */
import { parseDecimal } from '../../../../shared/billing/price.ts';
import { attributeOf, plainRow } from '../../../../shared/config/rows/read-row.ts';
import { usageFailure } from '../../../../shared/operate/plan.ts';
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';
import { asRecord } from '../../../../shared/wire/json.ts';
import { html, shownValue, type Content, type Markup } from '../../markup.ts';

export interface Field {
  name: string;
  /** What messages of plans call it beside that. */
  alsoNamed?: string;
  label: string;
  kind?: 'text' | 'area' | 'choice' | 'hidden' | 'check';
  value?: string | undefined;
  help?: Content;
  choices?: readonly (readonly [value: string, words: string])[];
  required?: boolean;
  width?: 'third';
  /** What a phone's keyboard shows. */
  input?: 'decimal' | 'numeric' | 'email';
  placeholder?: string;
  /** A mark of the relay at this attribute of the row: `_problem` or `_warning`. */
  mark?: { kind: 'bad' | 'warning'; words: string } | undefined;
}

export interface SentForm {
  fields: Readonly<Record<string, string>>;
  /** Why it was refused. Absent: it was not, and is changed again. */
  problem?: string;
  /** It was refused because its row is another one now. */
  isOvertaken?: boolean;
}

interface FormOf {
  action: string;
  formToken: string;
  fields: readonly Field[];
  verb: string;
  cancel?: string | undefined;
  tried?: SentForm | undefined;
}

export function form({ action, formToken, fields, verb, cancel, tried }: FormOf): Markup {
  const problem = tried?.problem;
  const errors = problem === undefined ? new Map<string, string>() : errorsByField(problem, fields);
  const first = fields.find(({ name }) => errors.has(name))?.name;
  const needed = errors.size === 1 ? 'One field needs a change.' : `${errors.size} fields need a change.`;
  return html`<form method="post" action="${action}" class="stacked">
    <input type="hidden" name="form_token" value="${formToken}" />
    ${
      problem !== undefined &&
      html`<p class="notice bad" role="alert">
        ${errors.size === 0 ? problem : `Nothing was written. ${needed}`}
      </p>`
    }
    ${fields.map((field) => fieldOf(withTried(field, tried), { error: errors.get(field.name), isFirst: field.name === first }))}
    <div class="buttons">
      <button type="submit" class="main">${verb}</button>
      ${cancel !== undefined && html`<a href="${cancel}">Cancel</a>`}
    </div>
  </form>`;
}

/**
 * A hidden field says which row was looked at. It is made anew for a form that was refused because its row is another one now,
 * and for no other: a typo that is corrected must not write over what somebody else wrote meanwhile.
 */
const withTried = (field: Field, tried: SentForm | undefined): Field =>
  tried && !(field.kind === 'hidden' && tried.isOvertaken)
    ? { ...field, value: tried.fields[field.name] ?? '' }
    : field;

/** `isFirst`: of those with an error, where the keyboard begins. */
function fieldOf(
  field: Field,
  { error, isFirst = false }: { error?: string | undefined; isFirst?: boolean },
): Markup {
  const { name, label, kind = 'text', value = '', help, mark } = field;
  if (kind === 'hidden') return html`<input type="hidden" name="${name}" value="${value}" />`;
  const described = [
    help !== undefined && `${name}-help`,
    mark !== undefined && `${name}-mark`,
    error !== undefined && `${name}-error`,
  ].filter((id) => id !== false);
  const state = html`id="field-${name}" name="${name}"
  ${described.length > 0 && html`aria-describedby="${described.join(' ')}"`}
  ${error !== undefined && html`aria-invalid="true"`} ${isFirst && html`autofocus`}
  ${field.required && html`required aria-required="true"`}`;
  return html`<div class="field ${field.width ?? ''} ${error === undefined ? (mark?.kind ?? '') : 'bad'}">
    <label for="field-${name}">${label}</label>
    ${controlOf(field, state)}
    ${error !== undefined && html`<p class="error" id="${name}-error">${error}</p>`}
    ${
      mark !== undefined &&
      html`<p class="mark ${mark.kind}" id="${name}-mark">
        <strong>${mark.kind === 'bad' ? '_problem' : '_warning'}</strong> ${mark.words}
      </p>`
    }
    ${help !== undefined && html`<p class="help" id="${name}-help">${help}</p>`}
  </div>`;
}

function controlOf({ kind = 'text', value = '', choices = [], ...field }: Field, state: Markup): Markup {
  if (kind === 'area')
    return html`<textarea ${state} rows="${Math.min(12, value.split('\n').length + 2)}">${value}</textarea>`;
  if (kind === 'choice')
    return html`<select ${state}>
      ${choices.map(
        ([each, words]) =>
          html`<option value="${each}" ${each === value && html`selected`}>${words}</option>`,
      )}
    </select>`;
  if (kind === 'check')
    return html`<input type="checkbox" value="yes" ${state} ${value === 'yes' && html`checked`} />`;
  return html`<input
    type="text"
    value="${value}"
    ${state}
    autocomplete="off"
    spellcheck="false"
    ${field.input !== undefined && html`inputmode="${field.input}"`}
    ${field.placeholder !== undefined && html`placeholder="${field.placeholder}"`}
  />`;
}

/**
 * A message of a schema names attributes: `priority: found x, wanted a whole number; weight: ...`. What names none of the
 * fields belongs to the whole form.
 */
export function errorsByField(
  problem: string,
  fields: readonly Pick<Field, 'name' | 'alsoNamed'>[],
): Map<string, string> {
  const errors = new Map<string, string>();
  for (const part of problem.replace(/^nothing was written: /, '').split('; ')) {
    const [, path = '', words = ''] = /^-{0,2}([\w-]+[\w.[\]-]*):? (.*)$/s.exec(part) ?? [];
    const written = path.replaceAll('-', '_').replaceAll(/\[(\d+)\]/g, '.$1');
    const isIn = (name: string | undefined): boolean =>
      name !== undefined && (written === name || written.startsWith(`${name}.`));
    const named = fields.filter(({ name, alsoNamed }) => isIn(name) || isIn(alsoNamed));
    // Of a map and its parts, the part.
    const [field] = named.toSorted((a, b) => b.name.length - a.name.length);
    if (field === undefined) continue;
    errors.set(field.name, [errors.get(field.name), words].filter((each) => each).join('; '));
  }
  return errors;
}

/** A button alone: it leads to the page that says what it will do. */
export const actionButton = (action: string, formToken: string, verb: string): Markup =>
  html`<form method="post" action="${action}" class="single">
    <input type="hidden" name="form_token" value="${formToken}" /><button type="submit">${verb}</button>
  </form>`;

type SearchOf = Pick<FormOf, 'action' | 'fields' | 'verb'> & { isDense?: boolean };

/** A form that asks for a page: it writes nothing, so it needs no token. */
export const search = ({ action, fields, verb, isDense }: SearchOf): Markup =>
  html`<form
    method="get"
    action="${action}"
    class="inline ${isDense && 'dense'}"
    role="search"
    aria-label="${verb}"
  >
    ${fields.map((field) => fieldOf(field, {}))}
    <div class="buttons"><button type="submit">${verb}</button></div>
  </form>`;

/**
 * A field of a row: how its attribute is shown, and what becomes of what is typed. Absent: as text, and none where it is empty.
 * A name with points is a part of an attribute: `budget.amount`, `items.0.models`.
 */
export interface RowField extends Omit<Field, 'value'> {
  shown?: (value: unknown, row: RawRow) => string;
  typed?: (text: string, field: TypedField) => unknown;
}

type TypedField = (name: string) => string;

export const third = (name: string, label: string, help: string, more: Partial<RowField> = {}): RowField => ({
  name,
  label,
  help,
  width: 'third',
  input: 'decimal',
  typed: typedNumber,
  ...more,
});

export const namesField = (name: string, label: string, help: string): RowField => ({
  name,
  label,
  help,
  kind: 'area',
  shown: (value) => shownValue(value).replaceAll(', ', '\n'),
  typed: typedList,
});

/** @param none the words for no choice, if that is one */
export const choiceField = (
  name: string,
  label: string,
  choices: Readonly<Record<string, string>>,
  none?: string,
): RowField => ({
  name,
  label,
  kind: 'choice',
  choices: [...(none === undefined ? [] : [['', none] as const]), ...Object.entries(choices)],
});

/** @param none what nothing typed means */
export const flagField = (name: string, label: string, none: string, help?: Content): RowField => ({
  ...choiceField(name, label, { yes: 'yes', no: 'no' }, none),
  ...(help !== undefined && { help }),
  shown: (value) => (value === undefined ? '' : value === true ? 'yes' : 'no'),
  typed: (text) => (text === '' ? undefined : text === 'yes'),
});

export const jsonField = (name: string, label: string, help: Content): RowField => ({
  name,
  label,
  help,
  kind: 'area',
  shown: (value) => (value === undefined ? '' : JSON.stringify(value, plain, 2)),
  typed(text) {
    const map = typedJson(name, text);
    return Object.keys(map).length === 0 ? undefined : map;
  },
});

export const rowFields = (fields: readonly RowField[], row: RawRow): Field[] =>
  fields.map((field) =>
    Object.assign({}, field, { value: (field.shown ?? shownValue)(partAt(row, field.name), row) }),
  );

const partAt = (row: RawRow, name: string): unknown =>
  name.split('.').reduce((value: unknown, part) => attributeOf(value, part), row);

/** @param row what parts of an attribute without a field are taken from */
export const typedRow = (fields: readonly RowField[], field: TypedField, row: RawRow = {}): RawRow => {
  const made = fields.reduce<unknown>(
    (before, { name, typed: read = typed }) => withPart(before, name.split('.'), read(field(name), field)),
    plainRow(row),
  );
  const names = new Set(fields.map(({ name }) => topOf(name)));
  return Object.fromEntries([...names].map((name) => [name, withoutHoles(attributeOf(made, name))]));
};

const withoutHoles = (value: unknown): unknown =>
  Array.isArray(value) ? value.filter((each) => each !== undefined) : value;

/** Of a list of maps: the fields of those that are there, and of one more. */
export const listFields = (value: unknown, fieldsOf: (index: number) => readonly RowField[]): RowField[] =>
  Array.from({ length: (Array.isArray(value) ? value.length : 0) + 1 }, (_, index) => fieldsOf(index)).flat();

const topOf = (name: string): string => name.split('.')[0] ?? '';

/** A map or a list with a part set; of a part that is undefined, without it, and undefined where nothing is left. */
function withPart(whole: unknown, [part = '', ...rest]: readonly string[], value: unknown): unknown {
  const inner = rest.length === 0 ? value : withPart(attributeOf(whole, part), rest, value);
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

/** Which row was looked at: it is refused where somebody else wrote it meanwhile. */
export const seenField = (mark: string): Field => ({ name: 'seen', label: '', kind: 'hidden', value: mark });

/** The fields of a row, those without a field of their own as JSON. */
export const wholeRowFields = (own: readonly RowField[], row: RawRow, othersHelp: Content): Field[] => {
  const others = Object.entries(row).filter(([name]) => isOther(name, own));
  return [
    ...rowFields(own, row),
    {
      name: 'others',
      label: 'Other attributes',
      kind: 'area',
      value: others.length === 0 ? '' : JSON.stringify(Object.fromEntries(others), plain, 2),
      help: othersHelp,
    },
  ];
};

/** A key that was typed in the place of its reference is not shown again. */
export function withoutKeys(tried: SentForm | undefined): SentForm | undefined {
  if (!tried) return undefined;
  const fields = Object.entries(tried.fields).map(([name, text]) =>
    /(^|[._])secret$/.test(name) ? [name, typedList(text).filter(isReference).join(', ')] : [name, text],
  );
  return { ...tried, fields: Object.fromEntries(fields) as SentForm['fields'] };
}

export const isReference = (text: string): boolean => /^(ssm|secretsmanager|env):/.test(text);

const plain = (_: string, value: unknown): unknown => (value instanceof Set ? [...value] : value);

/** What was typed into them, over a row: undefined removes an attribute. Fields that are kept stay as they are. */
export function typedWholeRow(
  own: readonly RowField[],
  field: TypedField,
  row: RawRow,
  isKept: (name: string) => boolean = () => false,
): RawRow {
  const removed = isKept('others') ? [] : Object.keys(row).filter((name) => isOther(name, own));
  return {
    ...Object.fromEntries(removed.map((name) => [name, undefined])),
    ...typedJson('others', field('others')),
    ...typedRow(
      own.filter(({ name }) => !isKept(name)),
      field,
      row,
    ),
  };
}

export const typedNewRow = (own: readonly RowField[], field: TypedField): RawRow =>
  Object.fromEntries(
    Object.entries(typedWholeRow(own, field, {})).filter(([, value]) => value !== undefined),
  );

const isOther = (name: string, own: readonly RowField[]): boolean =>
  name !== 'id' && !name.startsWith('_') && !own.some((each) => topOf(each.name) === name);

/** As typed: the row's schema says what is wrong with it. Empty: the attribute is removed. */
export const typed = (text: string): string | undefined => (text === '' ? undefined : text);

/** Empty: the attribute is removed. A text that is no number stays one, for the row's schema to refuse. */
export function typedNumber(text: string): number | string | undefined {
  if (text === '') return undefined;
  const number = Number(text);
  // JavaScript reads `0x1F` as one too, and 1e400 as one that no row can hold.
  return parseDecimal(text, 0) !== undefined && Number.isFinite(number) ? number : text;
}

/** Names apart by commas, blanks or lines. */
export const typedList = (text: string): string[] => text.split(/[\s,]+/).filter((name) => name !== '');

export function typedJson(name: string, text: string): Record<string, unknown> {
  if (text === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // The parser's message quotes the text, which may contain a secret.
  }
  throw usageFailure(`${name}: found no JSON, wanted a map such as {"params": {...}}`);
}

/** The relay's marks of a row, at the fields that they name. */
export interface FieldMarks {
  problem?: string | undefined;
  warning?: string | undefined;
}

/** As they stand in the row. */
export const marksIn = ({ _problem: problem, _warning: warning }: RawRow): FieldMarks => ({
  ...(typeof problem === 'string' && { problem }),
  ...(typeof warning === 'string' && { warning }),
});

export function withMarks(fields: readonly Field[], { problem = '', warning = '' }: FieldMarks): Field[] {
  const [bad, warned] = [problem, warning].map((words) => errorsByField(words, fields));
  return fields.map((field): Field => {
    const [what, why] = [bad?.get(field.name), warned?.get(field.name)];
    if (what !== undefined) return { ...field, mark: { kind: 'bad', words: what } };
    return why === undefined ? field : { ...field, mark: { kind: 'warning', words: why } };
  });
}

/** The marks that name no field: they belong to the whole form. */
export const marksElsewhere = ({ problem, warning }: FieldMarks, fields: readonly Field[]): string[] =>
  [problem, warning].filter(
    (words): words is string => words !== undefined && errorsByField(words, fields).size === 0,
  );
