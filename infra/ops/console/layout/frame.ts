/** The frame of every page: navigation, breadcrumbs, notices, and a footer with the cost of the page. */
import type { Role } from '../../../../shared/operate/hosted-console.ts';
import type { TableTraffic, Target } from '../../../../shared/operate/operator-ports.ts';
import type { Field } from '../../fields/row-field.ts';
import { html, nothing, type Content, type Markup } from '../../markup.ts';
import { formatBytes, formatMilliseconds, renderTimes } from './figures.ts';
import { renderCopyableCommand, renderWithCommandLinks } from './command-links.ts';
import { renderActionButton } from './form.ts';
import { formatCount, formatStackOption } from '../../../../shared/operate/plan.ts';

/** `g` and the letter open the section. Keep the sections of a group together. */
const sections = [
  ['', 'Overview', 'o', 'Now'],
  ['requests', 'Requests', 'r', 'Now'],
  ['customers', 'Customers', 'c', 'Sales'],
  ['keys', 'Keys', 'k', 'Sales'],
  ['statements', 'Statements', 't', 'Sales'],
  ['margins', 'Margins', 'm', 'Sales'],
  ['channels', 'Channels', 'h', 'Offer'],
  ['charges', 'Prices', 'p', 'Offer'],
  ['settings', 'Settings', 's', 'Offer'],
  ['versions', 'Versions', 'v', 'Records'],
  ['history', 'History', 'i', 'Records'],
  ['audit', 'Audit', 'a', 'Records'],
] as const;

export interface Page {
  title: string;
  /** A path in the section of the page, if not its own. */
  section?: string;
  /** The pages between the section and this one. */
  above?: readonly (readonly [path: string, words: string])[];
  /** The page that an action came from, shown instead of `above`. */
  back?: string;
  body: Content;
  actions?: Content;
  /** The fields of the page's form, to assign errors to. */
  fields?: readonly Field[];
  status?: number;
  /** New keys to show; all other keys are masked. */
  secrets?: readonly string[];
}

export type ReadCost = TableTraffic & { elapsedMs: number };

interface FrameInput {
  base: string;
  /** Below the base, with the query: the `base` element makes links within a page need it. */
  path: string;
  where: string;
  identity: { name: string; role: Role; formToken: string };
  isHosted: boolean;
  style: string;
  scripts: readonly string[];
  cost: ReadCost;
}

export function renderFrame(page: Page, framing: FrameInput): Markup {
  const { title, above, back, body, actions } = page;
  const { base, path, where, identity, isHosted, style, scripts } = framing;
  const { name, role, formToken } = identity;
  const [section, sectionWords] = sectionOf(page.section ?? back ?? path);
  const crumbs =
    back === undefined ? above && [[section, sectionWords] as const, ...above] : [[back, 'Back'] as const];
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <base href="${base}" />
        <title>${title} · ${where}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="${style}" />
        ${scripts.map((script) => html`<script src="${script}" defer></script>`)}
      </head>
      <body class="console">
        <a class="skip" href="./${path}#content">Skip to content</a>
        <header class="top">
          <a class="brand" href="./">Relay <span>console</span></a>
          <span class="where" title="The tables that this console reads and writes">${where}</span>
          <form method="get" action="find" role="search" aria-label="Search everything" class="find">
            <input
              type="search"
              name="q"
              aria-label="Search everything"
              placeholder="Customer, key, model, request ID"
              autocomplete="off"
              spellcheck="false"
            />
          </form>
          <button type="button" data-zone hidden>UTC</button>
          <span class="who"
            >${role !== 'operator' && html`<span class="badge calm">${role === 'viewer' ? 'read-only' : role}</span> `}${name}</span
          >
          ${isHosted && renderActionButton('logout', formToken, 'Log out')}
        </header>
        <nav class="sections" aria-label="Sections">
          ${[...Map.groupBy(sections, ([, , , group]) => group)].map(
            ([group, some]) =>
              html`<p id="group-${group}">${group}</p>
                <ul aria-labelledby="group-${group}">
                  ${some.map(
                    ([each, words, letter]) =>
                      html`<li>
                        <a
                          href="${each === '' ? './' : each}"
                          data-go="${letter}"
                          title="g ${letter}"
                          ${each === section && html`aria-current="page"`}
                          >${words}</a
                        >
                      </li>`,
                  )}
                </ul>`,
          )}
        </nav>
        <main id="content" tabindex="-1">
          ${crumbs !== undefined && renderCrumbs(crumbs, title)}
          <div class="head">
            <h1>${title}</h1>
            ${actions !== undefined && html`<div class="actions">${actions}</div>`}
          </div>
          ${body}
        </main>
        <footer class="bottom">${renderCost(framing)}</footer>
      </body>
    </html> `;
}

/** Shows a page over a list: a script opens it as a modal dialog; without script it stands above the list. */
export const renderOverList = (list: Page, { title, actions, ...page }: Page, address: string): Page => ({
  ...list,
  ...(page.status !== undefined && { status: page.status }),
  ...(page.secrets !== undefined && { secrets: page.secrets }),
  section: list.section ?? address,
  body: html`<dialog open class="drawer" aria-labelledby="drawer-title" data-list="${address}">
      <div class="head">
        <h2 id="drawer-title">${title}</h2>
        ${actions ?? nothing}
      </div>
      ${page.body}
      <a class="close" href="${address}">Close</a>
    </dialog>
    ${list.body}`,
});

const renderCrumbs = (above: readonly (readonly [path: string, words: string])[], title: string): Markup =>
  html`<nav class="crumbs" aria-label="Breadcrumbs">
    <ol>
      ${above.map(([path, words]) => html`<li><a href="${path === '' ? './' : path}">${words}</a></li>`)}
      <li aria-current="page">${title}</li>
    </ol>
  </nav>`;

const renderCost = ({ cost }: FrameInput): Markup =>
  html`<span data-requests="${cost.requests}" data-bytes="${cost.bytes}"
      >DynamoDB: ${formatCount(cost.requests, 'request')}, ${formatBytes(cost.bytes)} read</span
    >
    <span>${formatMilliseconds(cost.elapsedMs)}</span>`;

type Tone = 'bad' | 'warning' | 'good' | 'calm';

export const renderNotice = (tone: Tone, words: Content): Markup =>
  html`<div class="notice ${tone}" ${tone === 'bad' && html`role="alert"`}>${renderTimes(words)}</div>`;

/** The result of an action gets the focus and is read aloud first. */
export const renderOutcome = (words: Content): Markup =>
  html`<div class="notice good" role="status" tabindex="-1" autofocus>${words}</div>`;

const shownMax = 8;

export const renderItems = (list: readonly Content[]): Markup =>
  html`<ul>
    ${list.map((each) => html`<li>${each}</li>`)}
  </ul>`;

export const renderWarnings = (list: readonly string[]): Markup =>
  list.length === 0
    ? nothing
    : renderNotice(
        'warning',
        html`${renderItems(list.slice(0, shownMax).map(renderWithCommandLinks))}
        ${
          list.length > shownMax &&
          html`<details>
            <summary>${list.length - shownMax} more</summary>
            ${renderItems(list.slice(shownMax).map(renderWithCommandLinks))}
          </details>`
        }`,
      );

export const renderDoubts = (problems: readonly string[], advice: Content = nothing): Markup =>
  renderNotice(
    'bad',
    html`<strong>This does not add up. Do not send it.</strong> ${renderItems(problems)} ${advice}`,
  );

export const renderEmptyState = (title: string, next: Content): Markup =>
  html`<p class="empty-title">${title}</p>
    <p>${next}</p>`;

/** Shows a command for the same stack. Scripts replace it by a button that copies it. */
export const renderCommand = (target: Target, verb: string, rest = ''): Markup =>
  html`<p>${renderCopyableCommand(`${verb}${formatStackOption(target)}${rest && ` ${rest}`}`)}</p>`;

export const sectionOf = (path: string): (typeof sections)[number] =>
  sections.find(([each]) => each !== '' && path.startsWith(each)) ?? sections[0];

export const renderEmptyBox = (title: string, next: Content): Markup =>
  html`<div class="empty">${renderEmptyState(title, next)}</div>`;

export const renderLead = (words: Content): Markup => html`<p class="lead">${renderTimes(words)}</p>`;
