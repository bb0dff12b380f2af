/** Forms: each field with its label, its help, its error and the relay's mark beside it. Works without script. */
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';
import { isReference, typedList, type Field } from '../../fields/row-field.ts';
import { html, type Content, type Markup } from '../../markup.ts';

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
  const needed =
    errors.size === 1 ? 'Correct the marked field.' : `Correct the ${errors.size} marked fields.`;
  return html`<form method="post" action="${action}" class="stacked">
    <input type="hidden" name="form_token" value="${formToken}" />
    ${
      problem !== undefined &&
      html`<p class="notice bad" role="alert">
        ${errors.size === 0 ? problem : `Nothing was saved. ${needed}`}
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
    ? { ...field, value: shownAgain(field.name, tried.fields[field.name] ?? '') }
    : field;

/** No key that was typed, nor one in the place of its reference. */
const shownAgain = (name: string, text: string): string =>
  /(^|[._])(secret|key)$/.test(name) ? typedList(text).filter(isReference).join(', ') : text;

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
        <strong>${mark.kind === 'bad' ? 'Error:' : 'Warning:'}</strong> ${mark.words}
      </p>`
    }
    ${help !== undefined && html`<p class="help" id="${name}-help">${withCode(help)}</p>`}
  </div>`;
}

/** Fields are described once, for the command line too. */
const withCode = (help: string): Content =>
  help.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));

function controlOf({ kind = 'text', value = '', choices = [], ...field }: Field, state: Markup): Markup {
  // A browser would take the line ends out of a line.
  if (kind === 'area' || (kind === 'text' && value.includes('\n')))
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
  for (const part of problem.replace(/^nothing was (?:written|saved): /, '').split('; ')) {
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
