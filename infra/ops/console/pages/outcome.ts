/** The pages of an action: confirmation, result, and failures. */
import { Failure } from '../../../../shared/operate/plan.ts';
import { canonicalJson } from '../../../../shared/wire/json.ts';
import { html, nothing, raw, type Markup } from '../../markup.ts';
import { renderNotice, renderOutcome, sectionOf, renderWarnings, type Page } from '../layout/frame.ts';
import { renderWithCommandLinks } from '../layout/command-links.ts';
import { renderTimes } from '../layout/figures.ts';
import { renderActionButton } from '../layout/form.ts';
import { proposeRowEdit, renderChanges } from '../visit/row-proposal.ts';
import {
  buildFormPage,
  addListToAddress,
  proposeWrites,
  type ActionEnd,
  type PendingForm,
  type Outcome,
  type Proposal,
  type FrozenProposal,
  type KeptResult,
  type Routes,
  type Visit,
} from '../visit/visit.ts';
import { planUndo } from '../../../../shared/operate/undo.ts';

/** Turns a proposal into texts and finished markup, which can be stored. */
export async function freezeProposal(proposal: Proposal): Promise<FrozenProposal> {
  const { carryOut: _, refunds: __, details = nothing, ...words } = proposal;
  return { ...words, details: String(await details) };
}

/**
 * Must be equal at confirmation. The impact on the last days is left out, because it changes every minute. Warnings are compared
 * by their words in any order, because the store returns members of maps in any order.
 */
export const basisOf = (shown: FrozenProposal): string =>
  canonicalJson({
    ...shown,
    details: '',
    changes: [],
    warnings: shown.warnings
      .join(' ')
      .split(/[\s;]+/)
      .toSorted(),
  });

/** The focus is on the heading, so that a second Enter does not press the button. */
export function renderConfirmation(
  { identity, list }: Visit,
  { id, shown, path, fields }: PendingForm,
): Page {
  const { title, back, effect, changes = [], questions, warnings, refusal, details, verb, grave } = shown;
  const isTyped = Object.keys(fields).some((name) => name !== 'form_token' && name !== 'list');
  const again = isTyped ? html`<a href="${addListToAddress(`${path}?again=${id}`, list)}">Edit</a>` : nothing;
  return {
    title,
    back,
    body: html`${refusal !== undefined && renderNotice('bad', renderWithCommandLinks(refusal))}
      ${renderWarnings(warnings)}
      <h2 tabindex="-1" autofocus>What will happen</h2>
      ${renderEffect(effect)} ${renderChanges(changes)} ${raw(details)}
      ${questions.map((question) => html`<p class="question">${renderTimes(question)}</p>`)}
      ${
        refusal === undefined
          ? html`<form method="post" action="confirm/${id}">
              <input type="hidden" name="form_token" value="${identity.formToken}" />
              <div class="buttons">
                <button type="submit" class="${grave ? 'grave' : 'main'}">${verb}</button>
                ${again}
                <a href="${back}">Cancel</a>
              </div>
            </form>`
          : html`<p class="buttons">${again} <a href="${back}">Back</a></p>`
      }`,
  };
}

const effectMax = 12;

const renderLines = (lines: readonly string[]): Markup[] =>
  lines.map((each) => html`<li>${renderWithCommandLinks(each)}</li>`);

/** Folds all but the first lines, because a sheet may have hundreds of credits and keys. */
const renderEffect = (effect: readonly string[]): Markup =>
  html`<ul class="effect">
    ${renderLines(effect.slice(0, effectMax))}
    ${
      effect.length > effectMax &&
      html`<li>
        <details>
          <summary>${effect.length - effectMax} more</summary>
          <ul>
            ${renderLines(effect.slice(effectMax))}
          </ul>
        </details>
      </li>`
    }
  </ul>`;

export function renderResult({ title, back }: Pick<Proposal, 'title' | 'back'>, ended: ActionEnd): Page {
  if ('error' in ended) {
    const { error } = ended;
    const body = renderProblem(error instanceof Failure ? error.message : fault, back, 'Back');
    return { title, back, body, status: 409 };
  }
  const { lines, details, secret, file, message, next = [], warnings = [] } = ended.outcome;
  return {
    title,
    back,
    secrets: [...(secret ? [secret.value] : []), ...(file?.keys ?? [])],
    body: html`${renderOutcome(lines.map((line) => html`<p>${renderWithCommandLinks(line)}</p>`))}
      ${secret !== undefined && renderSecret(secret)} ${file !== undefined && renderFile(file)}
      ${message !== undefined && renderMessage(message)} ${renderWarnings(warnings)} ${details ?? nothing}
      <p>
        ${[...next, [back, 'Back'] as const].map(([path, words]) => html`<a href="${path}">${words}</a> &nbsp; `)}
      </p>`,
  };
}

/** Renders the result on the page that led to the action: the changes, links to them, and Undo. */
export const renderDone = (
  { lines, changes = [], warnings = [], next = [], undo = [], back }: KeptResult,
  id: string,
  { identity }: Visit,
): Markup =>
  html`${renderOutcome([
    lines.map((line) => html`<p>${renderWithCommandLinks(line)}</p>`),
    renderChanges(changes),
    html`<p class="buttons">
      ${next.filter(([path]) => path !== back).map(([path, words]) => html`<a href="${path}">${words}</a>`)}
      ${undo.length > 0 && renderActionButton(`undo/${id}`, identity.formToken, 'Undo', { list: back })}
    </p>`,
  ])}
  ${renderWarnings(warnings)}`;

export const addUndoPages = (routes: Routes): void =>
  routes.form('/undo/:id', {
    page: buildFormPage(() => ({ title: 'Undo', cancel: './' })),
    async propose(visit) {
      const result = await visit.readResult(visit.parameter('id'));
      if (!result?.undo?.length)
        throw new Failure('this change can no longer be undone: edit the row, or roll back to a version');
      const plan = await planUndo(visit.ports, result.undo);
      const words = { title: `Undo: ${result.title}`, back: result.back, verb: 'Undo', grave: true };
      if ('edit' in plan) return proposeRowEdit(visit, plan, words);
      return proposeWrites(visit, plan, { ...words, report: () => ({ lines: ['Change undone.'] }) });
    },
  });

const renderSecret = ({ name, value }: NonNullable<Outcome['secret']>): Markup =>
  html`<h2>${name}</h2>
    <code class="secret" data-copy data-secret>${value}</code>
    <p class="soft">Save this key now; it can’t be shown again.</p>`;

/** The link contains the whole file, so it needs no script and no other request. The byte order mark makes spreadsheets read UTF-8. */
const renderFile = ({ name, text, keys }: NonNullable<Outcome['file']>): Markup =>
  html`<p class="buttons">
      <a
        class="button main"
        download="${name}"
        href="data:text/csv;base64,${Buffer.from(`\uFEFF${text}`).toString('base64')}"
        >Save the result</a
      >
    </p>
    ${keys.length > 0 && html`<p class="soft">The file contains the new keys and messages. Save it now; they can’t be shown again.</p>`}
    <details>
      <summary>Show the result</summary>
      <textarea readonly rows="12" aria-label="Result">${text}</textarea>
    </details>`;

const renderMessage = (lines: readonly string[]): Markup =>
  html`<h2>Message for the customer</h2>
    <pre class="command" data-copy>${lines.join('\n')}</pre>`;

/** Reveals no internals. */
const fault = 'Something went wrong. The error is in the terminal that started the console, or in its log.';

const renderProblem = (words: string, path: string, link: string): Markup =>
  html`${renderNotice('bad', renderWithCommandLinks(words))}
    <p><a href="${path}">${link}</a></p>`;

const statuses = { 1: 409, 2: 404, 3: 403 } as const;
const titles = { 1: 'Not possible', 2: 'Not found or invalid', 3: 'Not allowed' } as const;

export function renderFailure({ message, exitCode }: Failure, path: string): Page {
  const [section] = sectionOf(path);
  return {
    title: titles[exitCode],
    body: renderProblem(message, section === '' ? './' : section, 'Back to the list'),
    status: statuses[exitCode],
  };
}

export const renderNote = (status: number, words: string, title = 'Not completed'): Page => ({
  title,
  section: '',
  body: renderProblem(words, './', 'Go to the overview'),
  status,
});

export const renderFault = (): Page => renderNote(500, fault, 'Something went wrong');
export const renderMissing = (): Page => renderNote(404, 'This page does not exist.', 'Page not found');
