/** The page that says what was done, or how far it is. */
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import { span } from '../layout/times.ts';
import type { Page } from '../layout/frame.ts';
import { html, nothing, type Markup } from '../layout/markup.ts';
import { notice, outcome, warnings } from '../layout/notice.ts';
import type { Kept, Outcome, Proposal, Run } from '../visit/proposals.ts';
import type { Visit } from '../visit/visit.ts';
import { sectionOf } from './section-of.ts';

const refreshSeconds = 2;

export interface Shown {
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
