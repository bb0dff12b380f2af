/** Formats numbers, amounts, times and margins: short on the page, exact in the title. */
import { formatInteger, formatMoney } from '../../../../shared/operate/plan.ts';
import { formatYuan, type NanoYuan } from '../../../../shared/billing/money.ts';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import { marginOf } from '../../../../shared/operate/report.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { html, type Content, type Markup } from '../../markup.ts';

/** `2026-11-22 09:41`, in UTC. */
export const formatMinute = (ms: number): string => isoTime(ms).slice(0, 16).replace('T', ' ');

const units = ['', 'K', 'M', 'G', 'T'];

/** 12345678 -> `12.3M`, 0.012345 -> `0.0123`; whole numbers below 10,000 as they are. */
export function formatShort(value: number): string {
  const size = Math.abs(value);
  if (size < 1000) return String(Number(value.toPrecision(3)));
  if (size < 10_000) return formatInteger(Math.round(value));
  const power = Math.min(Math.floor(Math.log10(size) / 3), units.length - 1);
  return `${Number((value / 1000 ** power).toPrecision(3))}${units[power] ?? ''}`;
}

/** Shows two decimals, or as many as a small amount needs. */
export function renderYuan(amount: NanoYuan): Markup {
  return html`<data value="${formatYuan(amount)}" title="${formatMoney(amount)}"
    >${formatYuanShort(amount)}</data
  >`;
}

export const formatYuanShort = (amount: NanoYuan): string => formatMoney(roundYuan(amount));

/** Rounds to two decimals; amounts below one yuan to four. Keeps all decimals below a thousandth. */
export function roundYuan(amount: NanoYuan): NanoYuan {
  const size = amount < 0n ? -amount : amount;
  const unit = size >= 1_000_000_000n ? 10_000_000n : size >= 1_000_000n ? 100_000n : 1n;
  const rounded = ((size + unit / 2n) / unit) * unit;
  return amount < 0n ? -rounded : rounded;
}

export const formatPercent = (part: number | bigint, whole: number | bigint): string =>
  Number(whole) === 0 ? '–' : `${((100 * Number(part)) / Number(whole)).toFixed(1).replace('-', '−')} %`;

export const formatMilliseconds = (value: number): string =>
  value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(value < 10_000 ? 2 : 1)} s`;

export function formatBytes(count: number): string {
  if (count < 1024) return `${count} B`;
  return count < 1024 ** 2 ? `${(count / 1024).toFixed(1)} KB` : `${(count / 1024 ** 2).toFixed(2)} MB`;
}

const steps: readonly (readonly [limitMs: number, unitMs: number, name: string])[] = [
  [90_000, 1000, 's'],
  [90 * 60_000, 60_000, 'min'],
  [36 * 3_600_000, 3_600_000, 'h'],
  [Infinity, 86_400_000, 'd'],
];

export function formatSpan(spanMs: number): string {
  const size = Math.abs(spanMs);
  const [, unitMs, name] = steps.find(([limit]) => size < limit) ?? [0, 1000, 's'];
  const count = Math.round(size / unitMs);
  if (name === 'd') return count === 1 ? '1 day' : `${count} days`;
  return `${count} ${name}`;
}

/** `2026-11-22 09:41 UTC`, with the seconds unless they are 0. */
export const formatTimeUtc = (timeMs: number): string =>
  isoTime(timeMs)
    .replace('T', ' ')
    .replace(/(:00)?Z$/, ' UTC');

/** A script shows it in local time. */
export const renderTime = (timeMs: number): Markup =>
  html`<time datetime="${isoTime(timeMs)}">${formatTimeUtc(timeMs)}</time>`;

/** Does not match times in examples or in quoted input. */
const isoTimes = /(?<!"|such as |or )(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))/;

/** Renders the ISO 8601 times in a text like all other times. Markup stays as it is. */
export function renderTimes(content: Content): Content {
  if (typeof content !== 'string' || !isoTimes.test(content)) return content;
  return content
    .split(isoTimes)
    .map((part, at) =>
      at % 2 === 0 || Number.isNaN(Date.parse(part)) ? part : renderTime(Date.parse(part)),
    );
}

/** `3 min ago`, with the exact time as its title. */
export function renderAge(timeMs: number, nowMs: number): Markup {
  const differenceMs = timeMs - nowMs;
  const words =
    Math.abs(differenceMs) < 1000
      ? 'now'
      : differenceMs < 0
        ? `${formatSpan(differenceMs)} ago`
        : `in ${formatSpan(differenceMs)}`;
  const exact = isoTime(timeMs);
  return html`<time datetime="${exact}" title="${exact}" data-sort="${timeMs}">${words}</time>`;
}

/** `14:05:31`, with the day unless it is today: for live lists, whose rows are not rendered again. */
export function renderClockTime(timeMs: number, nowMs: number): Markup {
  const exact = isoTime(timeMs);
  const words = exact
    .slice(exact.slice(0, 10) === isoTime(nowMs).slice(0, 10) ? 11 : 5, 19)
    .replace('T', ' ');
  return html`<time datetime="${exact}" title="${exact}" data-sort="${timeMs}">${words}</time>`;
}

/** Rows may hold anything where a time belongs. */
export function renderRowTime(value: unknown, nowMs: number, show = renderAge): Markup {
  const timeMs = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(timeMs) ? html`${value === undefined ? '–' : 'invalid'}` : show(timeMs, nowMs);
}

/** Shows when a row changed and who changed it; an ARN is shortened to its end. */
export function renderLastChange(
  { _by: by, _at: at }: Readonly<Record<string, unknown>>,
  nowMs: number,
): Markup | undefined {
  if (at === undefined && by === undefined) return undefined;
  const who = typeof by === 'string' ? by : '';
  return html`${renderRowTime(at, nowMs)} ${who === '' ? '' : html`by ${renderWriter(who)}`}`;
}

export const renderWriter = (who: string): Markup =>
  html`<span title="${who}">${who.startsWith('arn:') ? who.slice(who.indexOf('/') + 1) : who}</span>`;

export function renderMargin(figures: DailyFigures): Content {
  const { earned } = marginOf(figures);
  if (earned === undefined && !figures.amounts.charged) return '–';
  if (earned === undefined)
    return html`<span class="soft" title="No channel that served these calls has a cost">unknown</span>`;
  const charged = figures.amounts.bought_charged ?? 0n;
  return html`<span class="${earned < 0n && 'loss'}" title="${formatPercent(earned, charged)} of charges"
    >${renderYuan(earned)}</span
  >`;
}

export function formatMargin(figures: DailyFigures): string {
  const { earned } = marginOf(figures);
  return earned === undefined ? 'margin unknown: no cost set' : `margin ${formatYuanShort(earned)}`;
}
