/** The frame of every page: navigation, breadcrumbs, and in the footer what the page cost to make. */
import { bytes, milliseconds } from './figures.ts';
import { html, nothing, type Content, type Markup } from './markup.ts';

export const sections = [
  ['', 'Overview'],
  ['customers', 'Customers'],
  ['keys', 'Keys'],
  ['channels', 'Channels'],
  ['charges', 'Prices'],
  ['requests', 'Requests'],
  ['statements', 'Statements'],
  ['versions', 'Versions'],
  ['audit', 'Audit'],
] as const;

export type Section = (typeof sections)[number][0];

export interface Page {
  title: string;
  section: Section;
  /** Path and words of the pages above this one. */
  above?: readonly (readonly [path: string, words: string])[];
  body: Content;
  /** What can be done here, beside the title. */
  actions?: Content;
  /** Absent: 200. */
  status?: number;
  /** A new key that this page shows; all other keys are masked. */
  secret?: string | undefined;
  /** Load it again after so many seconds: work is under way. */
  refreshSeconds?: number;
}

export interface Framing {
  base: string;
  /** The path of this page below the base, with its query: links inside a page need it, because of the base. */
  path: string;
  where: string;
  name: string;
  readOnly: boolean;
  style: string;
  scripts: readonly string[];
  cost: { requests: number; bytes: number; elapsedMs: number };
}

export function frame(page: Page, framing: Framing): Markup {
  const { title, section, above = [], body, actions, refreshSeconds } = page;
  const { base, path, where, name, readOnly, style, scripts } = framing;
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        ${refreshSeconds === undefined ? nothing : html`<meta http-equiv="refresh" content="${refreshSeconds}" />`}
        <base href="${base}" />
        <title>${title} · relay console</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="${style}" />
        ${scripts.map((script) => html`<script src="${script}" defer></script>`)}
      </head>
      <body class="console">
        <a class="skip" href="./${path}#content">Skip to the content</a>
        <header class="top">
          <a class="brand" href="./">Relay <span>console</span></a>
          <span class="where" title="The tables that this console works on">${where}</span>
          <span class="who"
            >${readOnly ? html`<span class="badge calm">read only</span> ` : nothing}${name}</span
          >
        </header>
        <nav class="sections" aria-label="Sections">
          <ul>
            ${sections.map(
              ([each, words]) =>
                html`<li>
                  <a
                    href="${each === '' ? './' : each}"
                    ${each === section ? html`aria-current="page"` : nothing}
                    >${words}</a
                  >
                </li>`,
            )}
          </ul>
        </nav>
        <main id="content" tabindex="-1">
          ${above.length === 0 ? nothing : crumbs([...above], title)}
          <div class="head">
            <h1>${title}</h1>
            ${actions === undefined ? nothing : html`<div class="actions">${actions}</div>`}
          </div>
          ${body}
        </main>
        <footer class="bottom">${costLine(framing)}</footer>
      </body>
    </html> `;
}

const crumbs = (above: (readonly [string, string])[], title: string): Markup =>
  html`<nav class="crumbs" aria-label="Breadcrumbs">
    <ol>
      ${above.map(([path, words]) => html`<li><a href="${path === '' ? './' : path}">${words}</a></li>`)}
      <li aria-current="page">${title}</li>
    </ol>
  </nav>`;

const costLine = ({ cost }: Framing): Markup =>
  html`<span data-requests="${cost.requests}" data-bytes="${cost.bytes}"
      >DynamoDB: ${cost.requests} ${cost.requests === 1 ? 'request' : 'requests'}, ${bytes(cost.bytes)}
      read</span
    >
    <span>${milliseconds(cost.elapsedMs)}</span>`;
