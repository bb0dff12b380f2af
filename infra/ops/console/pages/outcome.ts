/** The page that asks before anything is written. */
import { type Page, notice, warnings, sectionOf, outcome } from '../layout/frame.ts';
import { html, nothing, type Markup } from '../layout/markup.ts';
import type { Kept, Visit, Outcome, Proposal, Run } from '../visit/visit.ts';
import { Failure } from '../../../../shared/operate/plan.ts';
import { span } from '../layout/figures.ts';

export function confirmPage({ identity }: Visit, { id, proposal, path, typed }: Kept): Page {
  const { title, back, effect, questions, refusal, details, verb, grave } = proposal;
  const isTyped = Object.keys(typed).some((name) => name !== 'form_token');
  const again = isTyped ? html`<a href="${path}?again=${id}">Change the values</a>` : nothing;
  return {
    title,
    section: sectionOf(back),
    above: [[back, 'Back']],
    body: html`${refusal === undefined ? nothing : notice('bad', refusal)}
      ${warnings(proposal.warnings ?? [])}
      <h2>What happens</h2>
      <ul class="effect">
        ${effect.map((each) => html`<li>${each}</li>`)}
      </ul>
      ${details ?? nothing} ${questions.map((question) => html`<p class="question">${question}</p>`)}
      ${
        refusal === undefined
          ? html`<form method="post" action="confirm/${id}">
              <input type="hidden" name="form_token" value="${identity.formToken}" />
              <div class="buttons">
                <button type="submit" class="${grave ? 'grave' : 'main'}">${verb}</button>
                ${again}
                <a href="${back}">Cancel, write nothing</a>
              </div>
            </form>`
          : html`<p class="buttons">${again} <a href="${back}">Back, nothing was written</a></p>`
      }`,
  };
}

// The page that says what was done, or how far it is.

const refreshSeconds = 2;

interface Shown {
  kept: Kept;
  run: Run;
  secret: Outcome['secret'];
}

export function resultPage({ nowMs }: Visit, { kept: { proposal }, run, secret }: Shown): Page {
  const frame = {
    title: proposal.title,
    section: sectionOf(proposal.back),
    above: [[proposal.back, 'Back']] as const,
  };
  if (!run.ended)
    return {
      ...frame,
      body: notice(
        'calm',
        `Under way for ${span(nowMs - run.startedMs)}${run.words === '' ? '' : `: ${run.words}`}. This page loads itself again; closing it stops nothing.`,
      ),
      refreshSeconds,
    };
  if ('error' in run.ended) return { ...frame, body: failed(run.ended.error, proposal), status: 409 };
  const { lines, details, message = secret?.message, next = [] } = run.ended.outcome;
  return {
    ...frame,
    secret: secret?.value,
    body: html`${outcome(lines.map((line) => html`<p>${line}</p>`))}
      ${secret === undefined ? nothing : secretOf(secret)}
      ${message === undefined ? nothing : messageOf(message)} ${warnings(run.ended.outcome.warnings ?? [])}
      ${details ?? nothing}
      <p>
        ${[...next, [proposal.back, 'Back'] as const].map(
          ([path, words]) => html`<a href="${path}">${words}</a> &nbsp; `,
        )}
      </p>`,
  };
}

const secretOf = ({ name, value }: NonNullable<Outcome['secret']>): Markup =>
  html`<h2>${name}</h2>
    <code class="secret" data-secret>${value}</code>
    <p class="soft">
      It is shown this once and stored nowhere: copy it now. Loading this page again does not show it.
    </p>`;

const messageOf = (lines: readonly string[]): Markup =>
  html`<h2>To send</h2>
    <pre class="command">${lines.join('\n')}</pre>`;

function failed(error: unknown, { back }: Proposal): Markup {
  const words =
    error instanceof Failure
      ? error.message
      : 'Something went wrong that should not. What it was stands in the terminal that started the console.';
  return html`${notice('bad', words)}
    <p><a href="${back}">Back</a></p>`;
}

// Pages for what did not work out: expected failures say what to do, others say nothing of the inside.

const statuses = { 1: 409, 2: 404, 3: 403 } as const;

/** Of a page that cannot be shown. */
export function failurePage({ message, exitCode }: Failure, path: string): Page {
  const section = sectionOf(path);
  return {
    title: exitCode === 3 ? 'Not allowed' : 'Not found, or not possible',
    section,
    body: html`${notice('bad', message)}
      <p><a href="${section === '' ? './' : section}">Back to the list</a></p>`,
    status: statuses[exitCode],
  };
}

export const faultPage = (): Page => ({
  title: 'A mistake of this console',
  section: '',
  body: html`${notice(
      'bad',
      'Something went wrong that should not. What it was stands in the terminal that started the console.',
    )}
    <p><a href="./">To the overview</a></p>`,
  status: 500,
});

export const missingPage = (): Page => ({
  title: 'There is no such page',
  section: '',
  body: html`<p><a href="./">To the overview</a></p>`,
  status: 404,
});

export const notePage = (status: number, words: string): Page => ({
  title: 'Not done',
  section: '',
  body: html`${notice('bad', words)}
    <p><a href="./">To the overview</a></p>`,
  status,
});
