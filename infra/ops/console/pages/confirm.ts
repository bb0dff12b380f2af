/** The page that asks before anything is written. */
import type { Page } from '../layout/frame.ts';
import { html, nothing } from '../layout/markup.ts';
import { notice, warnings } from '../layout/notice.ts';
import type { Kept } from '../visit/proposals.ts';
import type { Visit } from '../visit/visit.ts';
import { sectionOf } from './section-of.ts';

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
