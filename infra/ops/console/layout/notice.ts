/** Notices: what is wrong, and what to do next. */
import { html, nothing, type Content, type Markup } from './markup.ts';

export type Tone = 'bad' | 'warning' | 'good' | 'calm';

export const notice = (tone: Tone, words: Content): Markup =>
  html`<div class="notice ${tone}" ${tone === 'bad' ? html`role="alert"` : nothing}>${words}</div>`;

/** What came of an action: where the keyboard goes on, and what is read aloud first. */
export const outcome = (words: Content): Markup =>
  html`<div class="notice good" role="status" tabindex="-1" autofocus>${words}</div>`;

const shownMax = 8;

const moreOf = (list: readonly string[]): Markup =>
  html`<details>
    <summary>${list.length} more</summary>
    <ul>
      ${list.map((each) => html`<li>${each}</li>`)}
    </ul>
  </details>`;

export const warnings = (list: readonly string[]): Markup =>
  list.length === 0
    ? nothing
    : notice(
        'warning',
        html`<ul>
            ${list.slice(0, shownMax).map((each) => html`<li>${each}</li>`)}
          </ul>
          ${list.length > shownMax ? moreOf(list.slice(shownMax)) : nothing}`,
      );

/** What is not there yet, and the next step. */
export const emptyState = (title: string, next: Content): Markup =>
  html`<p class="empty-title">${title}</p>
    <p>${next}</p>`;

/** A command of the CLI that does the same, or what the console does not. */
export const command = (words: string): Markup => html`<pre class="command"><code>${words}</code></pre>`;
