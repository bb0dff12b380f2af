/** Renders forms: each field with its label, help, error and warning. They work without script. */
import type { RawRow } from '../../../../shared/operate/operator-ports.ts';
import { isReference, parseTypedList, type Field } from '../../fields/row-field.ts';
import { html, type Content, type Markup } from '../../markup.ts';
import { renderWithCommandLinks } from './command-links.ts';
import { renderTimes } from './figures.ts';
import { listTexts } from '../../../../shared/wire/json.ts';

export interface SentForm {
  fields: Readonly<Record<string, string>>;
  /** Missing when a valid form is edited again. */
  problem?: string;
  /** Somebody else changed the row in the meantime. */
  isOvertaken?: boolean;
}

interface FormInput {
  action: string;
  formToken: string;
  fields: readonly Field[];
  verb: string;
  cancel?: string | undefined;
  tried?: SentForm | undefined;
  /** The list over which the form is shown. */
  list?: string | undefined;
}

export function renderForm({ action, formToken, fields, verb, cancel, tried, list }: FormInput): Markup {
  const problem = tried?.problem;
  const errors = problem === undefined ? new Map<string, string>() : assignErrors(problem, fields);
  const first = fields.find(({ name, entry }) => (errors.size > 0 ? errors.has(name) : entry?.isAdded))?.name;
  const needed =
    errors.size === 1 ? 'Correct the marked field.' : `Correct the ${errors.size} marked fields.`;
  return html`<form method="post" action="${action}" class="stacked">
    <input type="hidden" name="form_token" value="${formToken}" />
    ${list !== undefined && html`<input type="hidden" name="list" value="${list}" />`}
    ${
      // Browsers press the first button on Enter, which must not be one that changes rows of fields.
      fields.some(({ entry }) => entry) &&
      html`<button type="submit" class="unseen" tabindex="-1" aria-hidden="true">${verb}</button>`
    }
    ${
      problem !== undefined &&
      html`<p class="notice bad" role="alert">
        ${errors.size === 0 ? renderWithCommandLinks(problem) : `Nothing was saved. ${needed}`}
      </p>`
    }
    ${splitByGroup(fields.map((field) => keepSentValue(field, tried))).map((run) => {
      const shown = renderEntries(run, (field) =>
        renderField(field, { error: errors.get(field.name), isFirst: field.name === first }),
      );
      const [{ group } = {}] = run;
      if (group === undefined) return shown;
      const isOpen = run.some(
        ({ name, value = '', mark, entry }) =>
          value !== '' || mark || errors.has(name) || entry?.isOpen || entry?.isAdded,
      );
      return html`<details class="group" ${isOpen && html`open`}>
        <summary>${group}</summary>
        ${shown}
      </details>`;
    })}
    <div class="buttons">
      <button type="submit" class="main">${verb}</button>
      ${cancel !== undefined && html`<a href="${cancel}">Cancel</a>`}
    </div>
  </form>`;
}

/** Renders each entry as a frame with its buttons, and a button that adds one. They need no script: the server answers with the changed form. */
function renderEntries(run: readonly Field[], render: (field: Field) => Markup): Content {
  const { list, about, noun = '' } = run.find(({ entry }) => entry)?.entry ?? {};
  if (list === undefined) return run.map(render);
  const entries = Map.groupBy(
    run.filter(({ entry }) => entry),
    ({ entry }) => entry?.at,
  );
  return html`${about !== undefined && html`<p class="help">${renderHelp(about)}</p>`}
    ${run.filter(({ entry }) => !entry).map(render)}
    ${[...entries].map(
      ([at, fields], position) =>
        html`<fieldset class="entry">
          <legend>${noun} ${fields[0]?.entry?.number}</legend>
          ${fields.map(render)}
          <div class="buttons">
            ${renderRowButton(`remove ${list}.${at}`, 'Remove')}
            ${position > 0 && renderRowButton(`up ${list}.${at}`, 'Move up')}
          </div>
        </fieldset>`,
    )}
    <div class="buttons">${renderRowButton(`add ${list}`, `Add ${noun.toLowerCase()}`)}</div>`;
}

const renderRowButton = (value: string, words: string): Markup =>
  html`<button type="submit" name="rows" value="${value}" formnovalidate>${words}</button>`;

const splitByGroup = (fields: readonly Field[]): Field[][] => {
  const starts = fields.flatMap(({ group }, at) =>
    at === 0 || group === undefined || group !== fields[at - 1]?.group ? [at] : [],
  );
  return starts.map((start, at) => fields.slice(start, starts[at + 1]));
};

/**
 * A hidden field identifies the version of the row that was shown. It is renewed only when the form was refused because the row
 * changed: correcting a typo must not overwrite somebody else's change.
 */
function keepSentValue(field: Field, tried: SentForm | undefined): Field {
  if (!tried || (field.kind === 'hidden' && tried.isOvertaken)) return field;
  // A field that was not in the form is new. Browsers leave out boxes that are not ticked.
  const sent = tried.fields[field.name] ?? (field.kind === 'check' ? '' : field.value);
  return { ...field, value: keepReferences(field.name, sent ?? '') };
}

/** Never shows a typed key, nor one where a reference belongs. */
const keepReferences = (name: string, text: string): string =>
  /(^|[._])(secret|key)$/.test(name) ? parseTypedList(text).filter(isReference).join(', ') : text;

/** The first field with an error gets the focus. */
function renderField(
  field: Field,
  { error, isFirst = false }: { error?: string | undefined; isFirst?: boolean },
): Markup {
  const { name, label, kind = 'text', value = '', help, mark } = field;
  if (kind === 'hidden') return html`<input type="hidden" name="${name}" value="${value}" />`;
  const described = listTexts(
    help !== undefined && `${name}-help`,
    mark !== undefined && `${name}-mark`,
    error !== undefined && `${name}-error`,
  );
  const state = html`id="field-${name}" name="${name}"
  ${described.length > 0 && html`aria-describedby="${described.join(' ')}"`}
  ${error !== undefined && html`aria-invalid="true"`} ${isFirst && html`autofocus`}
  ${field.required && html`required aria-required="true"`}`;
  return html`<div class="field ${field.width ?? ''} ${error === undefined ? (mark?.kind ?? '') : 'bad'}">
    <label for="field-${name}" ${field.required && html`data-needed`}
      >${field.entry && html`<span class="unseen">${field.entry.noun} ${field.entry.number}: </span>`}${label}</label
    >
    ${renderControl(field, state)}
    ${error !== undefined && html`<p class="error" id="${name}-error">${renderWithCommandLinks(error)}</p>`}
    ${
      mark !== undefined &&
      html`<p class="mark ${mark.kind}" id="${name}-mark">
        <strong>${mark.kind === 'bad' ? 'Error:' : 'Warning:'}</strong> ${mark.words}
      </p>`
    }
    ${help !== undefined && html`<p class="help" id="${name}-help">${renderHelp(help)}</p>`}
  </div>`;
}

/** The command line shows help texts too, so code is between backquotes. */
const renderHelp = (help: string): Content =>
  help.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : renderTimes(part)));

function renderControl({ kind = 'text', value = '', choices = [], ...field }: Field, state: Markup): Markup {
  // An input would lose line ends.
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
 * Assigns messages to fields: those of a schema begin with an attribute (`priority: found x, expected a whole number; weight: ...`),
 * those of commands name an option (`invalid --rate x: use a number`). A message that names no field belongs to the whole form.
 */
export function assignErrors(
  problem: string,
  fields: readonly Pick<Field, 'name' | 'alsoNamed' | 'place' | 'entry'>[],
): Map<string, string> {
  const errors = new Map<string, string>();
  const places = fields.map(({ name, place = name, alsoNamed = place, entry }) => ({
    name,
    paths: [place, alsoNamed].map((path) => `${normalize(path)}.`),
    entry,
  }));
  const findField = (path: string): string | undefined => {
    const written = `${normalize(path)}.`;
    const named = places.filter(({ paths }) => paths.some((each) => written.startsWith(each)));
    // The field of a nested attribute wins over the field of the whole map.
    const [found] = named.toSorted(({ paths: [a = ''] }, { paths: [b = ''] }) => b.length - a.length);
    // A message about an entry or a whole list belongs to its first field.
    return (found ?? places.find(({ entry, paths: [each = ''] }) => entry && each.startsWith(written)))?.name;
  };
  for (const part of problem.replace(/^nothing was (?:written|saved): /, '').split('; ')) {
    const [, path = '', words = ''] = /^-{0,2}([\w-]\S*?):? (.*)$/s.exec(part) ?? [];
    const first = findField(path);
    const name = first ?? findField(/--([\w-]+)/.exec(part)?.[1] ?? '');
    if (name === undefined) continue;
    const message = first === undefined ? part.replaceAll(/--(?=\w)/g, '') : words;
    errors.set(name, [errors.get(name), message].filter((each) => each).join('; '));
  }
  return errors;
}

/** True if a message mentions one of the fields, or names a list or map that contains one: `until: expected a time later than from`. */
export function mentionsField(message: string, fields: readonly Pick<Field, 'name' | 'place'>[]): boolean {
  const [path = '', ...words] = normalize(message).split(/:? /);
  const named = new Set(words.join(' ').split(/\W+/));
  return fields.some(
    ({ name, place = name }) =>
      normalize(place).startsWith(`${path}.`) || named.has(place.slice(place.lastIndexOf('.') + 1)),
  );
}

const normalize = (path: string): string => path.replaceAll('-', '_').replaceAll(/\[(\d+)\]/g, '.$1');

/** A single button that leads to the page which says what it will do. */
export const renderActionButton = (
  action: string,
  formToken: string,
  verb: string,
  fields: Readonly<Record<string, string>> = {},
): Markup =>
  html`<form method="post" action="${action}" class="single">
    ${Object.entries({ form_token: formToken, ...fields }).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}<button
      type="submit"
    >
      ${verb}
    </button>
  </form>`;

export const renderFields = (fields: readonly Field[]): Markup[] =>
  fields.map((field) => renderField(field, {}));

type SearchInput = Pick<FormInput, 'action' | 'fields' | 'verb'> & { isDense?: boolean };

/** A search writes nothing, so it needs no token. */
export const renderSearch = ({ action, fields, verb, isDense }: SearchInput): Markup =>
  html`<form
    method="get"
    action="${action}"
    class="inline ${isDense && 'dense'}"
    role="search"
    aria-label="${verb}"
  >
    ${renderFields(fields)}
    <div class="buttons"><button type="submit">${verb}</button></div>
  </form>`;

export interface FieldMarks {
  problem?: string | undefined;
  warning?: string | undefined;
}

export const readMarks = ({ _problem: problem, _warning: warning }: RawRow): FieldMarks => ({
  ...(typeof problem === 'string' && { problem }),
  ...(typeof warning === 'string' && { warning }),
});

export function addMarks(fields: readonly Field[], { problem = '', warning = '' }: FieldMarks): Field[] {
  const [bad, warned] = [problem, warning].map((words) => assignErrors(words, fields));
  return fields.map((field): Field => {
    const [what, why] = [bad?.get(field.name), warned?.get(field.name)];
    if (what !== undefined) return { ...field, mark: { kind: 'bad', words: what } };
    return why === undefined ? field : { ...field, mark: { kind: 'warning', words: why } };
  });
}

/** Marks that name no field belong to the whole form. */
export const listUnassignedMarks = ({ problem, warning }: FieldMarks, fields: readonly Field[]): string[] =>
  [problem, warning].filter(
    (words): words is string => words !== undefined && assignErrors(words, fields).size === 0,
  );
