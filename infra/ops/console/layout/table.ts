/** Renders tables with right-aligned numbers, a caption for screen readers and an empty state, and small blocks such as tiles and badges. */
import { formatInteger, formatMoney } from '../../../../shared/operate/plan.ts';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import {
  describeCauses,
  summarizeAttempts,
  type AttemptSummary,
} from '../../../../shared/operate/channels/channel-health.ts';
import type { ViewColumn } from '../../../../shared/operate/statement.ts';
import { html, nothing, type Content, type Markup } from '../../markup.ts';
import { parseYuan, type NanoYuan } from '../../../../shared/billing/money.ts';
import {
  renderMargin,
  formatMilliseconds,
  formatPercent,
  formatShort,
  renderTimes,
  renderYuan,
  formatYuanShort,
} from './figures.ts';

export interface PageColumn<Row> {
  title: string;
  show: (row: Row) => Content;
  /** Right-aligned, with figures of one width. */
  isNumber?: boolean;
  /** The tooltip of a title that is too short. */
  about?: string;
  sortBy?: (row: Row) => string | number | bigint | undefined;
  /** The column is left out when no row has it. */
  has?: (row: Row) => boolean;
  /** The number as shown, to align the decimal points of a column; `decimals` is the least number of them. */
  textOf?: ((row: Row) => string | undefined) | undefined;
  decimals?: number;
  isActions?: boolean;
  /** Its links lead to forms that a script opens over the list. */
  opensForms?: boolean;
  /** It names the row. */
  isHead?: boolean;
}

type Cell<Row> = PageColumn<Row>['show'];
type Options<Row> = Omit<PageColumn<Row>, 'title' | 'show'>;

export const column = <Row>(title: string, show: Cell<Row>, more: Options<Row> = {}): PageColumn<Row> => ({
  title,
  show,
  ...more,
});

export const head = <Row>(title: string, show: Cell<Row>, more: Options<Row> = {}): PageColumn<Row> =>
  column(title, show, { isHead: true, ...more });

export const number = <Row>(title: string, show: Cell<Row>, more: Options<Row> = {}): PageColumn<Row> =>
  column(title, show, { isNumber: true, ...more });

export const money = <Row>(
  title: string,
  amountOf: (row: Row) => NanoYuan | undefined,
  more: Options<Row> = {},
): PageColumn<Row> =>
  number(title, (row) => applyIfKnown(amountOf(row), renderYuan) ?? '–', {
    textOf: (row) => applyIfKnown(amountOf(row), formatYuanShort),
    ...more,
  });

const applyIfKnown = <Shown>(
  amount: NanoYuan | undefined,
  show: (amount: NanoYuan) => Shown,
): Shown | undefined => (amount === undefined ? undefined : show(amount));

/** Builds the columns of a view that the command line also prints. Decimal texts are amounts. */
export const buildViewColumns = <Row>(columns: readonly ViewColumn<Row>[]): PageColumn<Row>[] =>
  columns.map(([, title, value, text]) => {
    const sortBy = (row: Row): string | number => value(row) ?? '';
    const textOf = (row: Row): string => {
      const found = value(row);
      const amount = typeof found === 'string' && !text ? parseYuan(found) : undefined;
      if (amount !== undefined) return formatMoney(amount);
      if (typeof found === 'number' && !text) return formatInteger(found);
      return (text?.(row) ?? String(found ?? '-')).replace('-', '−');
    };
    return number(title.charAt(0) + title.slice(1).toLowerCase(), textOf, { sortBy, textOf });
  });

const countDecimals = (text = ''): number => (text.includes('.') ? text.length - 1 - text.indexOf('.') : 0);

/** Blanks as wide as a point and digits. */
const padDecimals = (text: string | undefined, decimals: number): string =>
  (decimals > 0 && !text?.includes('.') ? '\u2008' : '') + '\u2007'.repeat(decimals - countDecimals(text));

/** A form that a script opens over the list; without script it is a page. */
export const renderDrawerLink = (path: string, words: Content): Markup =>
  html`<a href="${path}" data-drawer>${words}</a>`;

export const actions = <Row>(show: Cell<Row>): PageColumn<Row> =>
  column('Actions', show, { isActions: true, opensForms: true });

export const renderWide = (text: Content): Markup => html`<span class="wide">${renderTimes(text)}</span>`;

/** Shortens a long text; the title has all of it. */
export const renderCut = (whole: string, shown: Content = renderTimes(whole)): Content =>
  whole.length <= wholeMax ? shown : html`<span class="cut" title="${whole}">${shown}</span>`;

const wholeMax = 20;

/** Renders an id with a button that copies it. Without script it is selectable text. Links can have `data-copy`, too. */
export const renderId = (id: string, shown = id): Markup =>
  html`<code data-copy="${shown === id ? '' : id}">${shown}</code>`;

/** Puts two things side by side, or below each other where there is no room. */
export const renderBoth = (first: Content, second: Content): Markup =>
  html`${first} <span class="second-line">${second}</span>`;

export interface TableInput<Row> {
  caption: string;
  columns: readonly PageColumn<Row>[];
  empty: Content;
  markOf?: (row: Row) => 'bad' | 'warning' | undefined;
  /** Rows arrive live, so they keep their order and no column is left out. */
  live?: { id: string; keyOf: (row: Row) => string };
  /** Rendered again while live, so it is not filtered. */
  isPlain?: boolean;
}

export function renderTable<Row>(rows: readonly Row[], of: TableInput<Row>): Markup {
  const { caption, empty, live } = of;
  const isPlain = of.isPlain ?? live !== undefined;
  const emptyBox = html`<div class="empty">${empty}</div>`;
  if (rows.length === 0 && !live) return emptyBox;
  const columns = of.columns.filter(({ has }) => !has || live || rows.some(has));
  const canFilter = rows.length > 8 && !isPlain;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}">
      <table class="data" ${canFilter && html`data-filter`} data-sortable>
        <caption>
          ${caption}
        </caption>
        <thead>
          <tr>
            ${columns.map((each) => renderHead(each))}
          </tr>
        </thead>
        <tbody ${live && html`id="${live.id}"`}>
          ${renderRows(rows, { ...of, columns })}
        </tbody>
      </table>
    </div>
    ${live && emptyBox}`;
}

export const renderRows = <Row>(
  rows: readonly Row[],
  { columns, markOf, live }: Pick<TableInput<Row>, 'columns' | 'markOf' | 'live'>,
): Markup => {
  const decimals = columns.map(({ textOf, decimals: least = 0 }) =>
    textOf ? Math.max(least, ...rows.map((row) => countDecimals(textOf(row)))) : 0,
  );
  return html`${rows.map(
    (row) =>
      html`<tr
        ${markOf?.(row) && html`class="${markOf(row)}"`}
        ${live && html`data-key="${live.keyOf(row)}"`}
      >
        ${columns.map((each, at) => renderCell(each, row, padDecimals(each.textOf?.(row), decimals[at] ?? 0)))}
      </tr>`,
  )}`;
};

const renderHead = <Row>({ title, isNumber, about, isActions }: PageColumn<Row>): Markup =>
  html`<th
    scope="col"
    ${isNumber && html`class="number"`}
    ${about !== undefined && html`title="${about}"`}
    ${isActions && html`data-actions`}
  >
    ${title}
  </th>`;

function renderCell<Row>(
  { show, isNumber, isHead, opensForms, sortBy }: PageColumn<Row>,
  row: Row,
  pad: string,
): Markup {
  const key = sortBy?.(row);
  const attributes = [
    isNumber && html` class="number"`,
    opensForms && html` data-drawer`,
    key !== undefined && html` data-sort="${String(key)}"`,
  ];
  const shown = renderTimes(show(row));
  if (isHead) return html`<th scope="row" ${attributes}>${shown}</th>`;
  return html`<td ${attributes}>${shown}${pad}</td>`;
}

type CountName = keyof DailyFigures['counts'];

/** Every table shows calls, tokens, times and amounts under the same titles, and sorts them the same. */
export const pickFigureColumns = <Row>(
  of: (row: Row) => DailyFigures,
  ...names: (keyof ReturnType<typeof buildFigureColumns>)[]
): PageColumn<Row>[] => {
  const all = buildFigureColumns(of);
  return names.map((name) => all[name]);
};

export function buildFigureColumns<Row>(of: (row: Row) => DailyFigures) {
  const count = (row: Row, name: CountName): number => of(row).counts[name] ?? 0;
  const makeTokens = (title: string, name: CountName, about = 'tokens'): PageColumn<Row> =>
    number(title, (row) => formatShort(count(row, name)), { about, sortBy: (row) => count(row, name) });
  const healthOf = (row: Row): AttemptSummary => summarizeAttempts(of(row));
  const buildTimeColumn = (title: string, name: 'p50Ms' | 'p95Ms'): PageColumn<Row> =>
    number(title, (row) => formatTime(healthOf(row)[name]), { sortBy: (row) => healthOf(row)[name] ?? 0 });
  return {
    calls: number('Calls', (row) => formatInteger(count(row, 'calls')), {
      sortBy: (row) => count(row, 'calls'),
    }),
    failed: number('Failed', (row) => formatPercent(count(row, 'failures'), count(row, 'calls')), {
      sortBy: (row) => count(row, 'failures') / Math.max(1, count(row, 'calls')),
    }),
    plan: number('On plan', (row) => formatInteger(count(row, 'plan_calls')), {
      about: 'calls paid by a plan',
    }),
    input: makeTokens('Input', 'prompt_tokens'),
    cached: makeTokens('Cached', 'cached_tokens', 'tokens of the input'),
    output: makeTokens('Output', 'completion_tokens'),
    attempts: number('Attempts', (row) => formatInteger(healthOf(row).attempts), {
      about: 'a call that fails over counts as one attempt at each channel that it tried',
      sortBy: (row) => healthOf(row).attempts,
    }),
    failedAttempts: number('Failed', (row) => renderFailedShare(healthOf(row)), {
      sortBy: (row) => healthOf(row).failed / Math.max(1, healthOf(row).attempts),
    }),
    firstContentMedian: buildTimeColumn('First content, p50', 'p50Ms'),
    firstContent: buildTimeColumn('p95', 'p95Ms'),
    speed: number('Tokens/s', (row) => formatSpeed(healthOf(row).tokensPerSecond), {
      about: 'output tokens per second of streamed answers, after the first content',
      sortBy: (row) => healthOf(row).tokensPerSecond ?? 0,
    }),
    charged: money('Charged', (row) => of(row).amounts.charged ?? 0n),
    margin: number('Margin', (row) => renderMargin(of(row)), { about: 'only calls with a known cost' }),
  } satisfies Record<string, PageColumn<Row>>;
}

export const formatTime = (milliseconds: number | undefined): string =>
  milliseconds === undefined ? '–' : formatMilliseconds(milliseconds);

const formatSpeed = (speed: number | undefined): string => (speed === undefined ? '–' : speed.toFixed(1));

const renderFailedShare = (health: AttemptSummary): Content =>
  html`<span title="${describeCauses(health)}">${formatPercent(health.failed, health.attempts)}</span>`;

/** Names and values: `facts` side by side, `steps` one below the other. */
export const renderDefinitions = (
  shape: 'facts' | 'steps',
  entries: readonly (readonly [name: string, value: Content])[],
): Markup =>
  html`<dl class="${shape}">
    ${entries.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${renderTimes(value)}</dd>
        </div>`,
    )}
  </dl>`;

export const renderTiles = (
  entries: readonly {
    name: string;
    value: Content;
    note?: Content;
    mark?: 'bad' | 'warning' | 'good' | false;
  }[],
): Markup =>
  html`<ul class="tiles">
    ${entries.map(
      ({ name, value, note, mark }) =>
        html`<li class="${mark || ''}">
          <span class="name">${name}</span><strong>${value}</strong
          ><span class="note">${note ?? nothing}</span>
        </li>`,
    )}
  </ul>`;

export const renderPager = (count: Content, next?: string | false): Markup =>
  html`<nav class="pager" aria-label="Pages">
    <span>${count}</span>${next && html`<a href="${next}" rel="next">Next page →</a>`}
  </nav>`;

export const renderBadge = (words: string, mark: 'good' | 'bad' | 'warning' | 'calm' = 'calm'): Markup =>
  html`<span class="badge ${mark}">${words}</span>`;

/** The same page in other orders or times. */
export const renderTabs = (
  label: string,
  entries: readonly (readonly [path: string, words: string])[],
  current: string,
): Markup =>
  html`<nav class="tabs" aria-label="${label}">
    ${entries.map(
      ([path, words]) =>
        html`<a href="${path}" ${path === current && html`aria-current="page"`}>${words}</a>`,
    )}
  </nav>`;
