/** The pages of an action: what asks before a write, what says that it was done or how far it is, and what did not work out. */
import { Failure } from '../../../../shared/operate/plan.ts';
import { html, nothing, type Markup } from '../../markup.ts';
import { span } from '../layout/figures.ts';
import { notice, outcome, sectionOf, warnings, type Page } from '../layout/frame.ts';
import type { KeptVisit, Outcome, ActionRun, Visit } from '../visit/visit.ts';

export function confirmPage({ identity }: Visit, { id, proposal, path, typed }: KeptVisit): Page {
  const { title, back, effect, questions, refusal, details, verb, grave } = proposal;
  const isTyped = Object.keys(typed).some((name) => name !== 'form_token');
  const again = isTyped ? html`<a href="${path}?again=${id}">Change the values</a>` : nothing;
  return {
    title,
    back,
    body: html`${refusal !== undefined && notice('bad', refusal)} ${warnings(proposal.warnings ?? [])}
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

const refreshSeconds = 2;

interface Shown {
  kept: KeptVisit;
  run: ActionRun;
  secret: Outcome['secret'];
}

export function resultPage({ nowMs }: Visit, { kept, run, secret }: Shown): Page {
  const { title, back } = kept.proposal;
  if (!run.ended) {
    const words = run.words === '' ? '' : `: ${run.words}`;
    const body = notice(
      'calm',
      `Under way for ${span(nowMs - run.startedMs)}${words}. This page loads itself again; closing it stops nothing.`,
    );
    return { title, back, body, refreshSeconds };
  }
  if ('error' in run.ended) {
    const { error } = run.ended;
    const body = unfortunate(error instanceof Failure ? error.message : fault, back, 'Back');
    return { title, back, body, status: 409 };
  }
  const { lines, details, message = secret?.message, next = [], warnings: said = [] } = run.ended.outcome;
  return {
    title,
    back,
    secret: secret?.value,
    body: html`${outcome(lines.map((line) => html`<p>${line}</p>`))}
      ${secret !== undefined && secretOf(secret)} ${message !== undefined && messageOf(message)}
      ${warnings(said)} ${details ?? nothing}
      <p>
        ${[...next, [back, 'Back'] as const].map(([path, words]) => html`<a href="${path}">${words}</a> &nbsp; `)}
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

/** Says nothing of the inside. */
const fault =
  'Something went wrong that should not. What it was stands in the terminal that started the console.';

const unfortunate = (words: string, path: string, link: string): Markup =>
  html`${notice('bad', words)}
    <p><a href="${path}">${link}</a></p>`;

const statuses = { 1: 409, 2: 404, 3: 403 } as const;

/** Of a page that cannot be shown: an expected failure says what to do. */
export function failurePage({ message, exitCode }: Failure, path: string): Page {
  const [section] = sectionOf(path);
  return {
    title: exitCode === 3 ? 'Not allowed' : 'Not found, or not possible',
    body: unfortunate(message, section === '' ? './' : section, 'Back to the list'),
    status: statuses[exitCode],
  };
}

export const faultPage = (): Page => ({
  title: 'A mistake of this console',
  section: '',
  body: unfortunate(fault, './', 'To the overview'),
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
  body: unfortunate(words, './', 'To the overview'),
  status,
});
