/** Tables: numbers to the right, a caption for readers, an empty state that says what to do next. */
import { html, nothing, type Content, type Markup } from './markup.ts';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import { firstContentWithin } from '../../../../shared/operate/report.ts';
import { grouped, milliseconds, percent, short, yuan, margin } from './figures.ts';

export interface Column<Row> {
  title: string;
  /** The content, or content with a value to sort by. */
  show: (row: Row) => Content;
  /** Right-aligned, with figures of one width. */
  isNumber?: boolean;
  /** What the column says, where its title is too short. */
  about?: string;
  sortBy?: (row: Row) => string | number | bigint | undefined;
  /** The column is left out when no row has it. */
  has?: (row: Row) => boolean;
  /** Buttons: not to sort by. */
  isActions?: boolean;
  /** It names the row. */
  isHead?: boolean;
}

interface TableOf<Row> {
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  empty: Content;
  /** Rows with a mark: a problem or a warning. */
  markOf?: (row: Row) => 'bad' | 'warning' | undefined;
}

export function table<Row>({ caption, rows, empty, markOf, ...given }: TableOf<Row>): Markup {
  if (rows.length === 0) return html`<div class="empty">${empty}</div>`;
  const columns = given.columns.filter(({ has }) => !has || rows.some(has));
  const canFilter = rows.length > 8;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}">
    <table class="data" ${canFilter ? html`data-filter` : nothing} data-sortable>
      <caption>
        ${caption}
      </caption>
      <thead>
        <tr>
          ${columns.map((column) => headOf(column))}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr class="${markOf?.(row) ?? ''}">
              ${columns.map((column) => bodyOf(column, row))}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}

const headOf = <Row>({ title, isNumber, about, isActions }: Column<Row>): Markup =>
  html`<th
    scope="col"
    ${isNumber ? html`class="number"` : nothing}
    ${about === undefined ? nothing : html`title="${about}"`}
    ${isActions ? html`data-actions` : nothing}
  >
    ${title}
  </th>`;

function bodyOf<Row>({ show, isNumber, isHead, sortBy }: Column<Row>, row: Row): Markup {
  const key = sortBy?.(row);
  const sort = key === undefined ? nothing : html` data-sort="${String(key)}"`;
  if (isHead) return html`<th scope="row" ${sort}>${show(row)}</th>`;
  return html`<td class="${isNumber ? 'number' : ''}" ${sort}>${show(row)}</td>`;
}

/** Names and values beside each other. */
export const facts = (entries: readonly (readonly [name: string, value: Content])[]): Markup =>
  html`<dl class="facts">
    ${entries.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;

/** What happened, one thing after the other. */
export const stepList = (entries: readonly (readonly [what: string, words: Content])[]): Markup =>
  html`<dl class="steps">
    ${entries.map(
      ([what, words]) =>
        html`<dt>${what}</dt>
          <dd>${words}</dd>`,
    )}
  </dl>`;

/** Large figures at the top of a page. */
export const tiles = (
  entries: readonly { name: string; value: Content; note?: Content; mark?: 'bad' | 'warning' | 'good' }[],
): Markup =>
  html`<ul class="tiles">
    ${entries.map(
      ({ name, value, note, mark }) =>
        html`<li class="${mark ?? ''}">
          <span class="name">${name}</span><strong>${value}</strong
          ><span class="note">${note ?? nothing}</span>
        </li>`,
    )}
  </ul>`;

/** Where a list goes on. `count`: what this page shows, in honest words. */
export const pager = ({ count, next, first }: { count: Content; next?: string; first?: string }): Markup =>
  html`<nav class="pager" aria-label="Pages">
    <span>${count}</span>${first === undefined ? nothing : html`<a href="${first}">First page</a>`}${
      next === undefined ? nothing : html`<a href="${next}" rel="next">Next page →</a>`
    }
  </nav>`;

/** A word of a state, with a colour that is not needed to understand it. */
export const badge = (words: string, mark: 'good' | 'bad' | 'warning' | 'calm' = 'calm'): Markup =>
  html`<span class="badge ${mark}">${words}</span>`;

// Columns of sums: calls, tokens, times and amounts stand in every table under the same titles, and sort the same.

type CountName = keyof DailyFigures['counts'];

export function figureColumns<Row>(of: (row: Row) => DailyFigures) {
  const count = (row: Row, name: CountName): number => of(row).counts[name] ?? 0;
  const tokens = (title: string, name: CountName, about = 'tokens'): Column<Row> => ({
    title,
    isNumber: true,
    about,
    show: (row) => short(count(row, name)),
    sortBy: (row) => count(row, name),
  });
  return {
    calls: {
      title: 'Calls',
      isNumber: true,
      show: (row) => grouped(count(row, 'calls')),
      sortBy: (row) => count(row, 'calls'),
    },
    failed: {
      title: 'Failed',
      isNumber: true,
      show: (row) => percent(count(row, 'failures'), count(row, 'calls')),
      sortBy: (row) => count(row, 'failures') / Math.max(1, count(row, 'calls')),
    },
    input: tokens('Input', 'prompt_tokens'),
    cached: tokens('Cached', 'cached_tokens', 'tokens of the input'),
    output: tokens('Output', 'completion_tokens'),
    firstContent: {
      title: 'First content, 95 %',
      isNumber: true,
      show(row) {
        const within = firstContentWithin(of(row), 0.95);
        return within === undefined ? '–' : `≤ ${milliseconds(within)}`;
      },
      sortBy: (row) => firstContentWithin(of(row), 0.95) ?? 0,
    },
    charged: { title: 'Charged', isNumber: true, show: (row) => yuan(of(row).amounts.charged ?? 0n) },
    margin: {
      title: 'Margin',
      isNumber: true,
      about: 'of the calls whose cost is known',
      show: (row) => margin(of(row)),
    },
  } satisfies Record<string, Column<Row>>;
}
