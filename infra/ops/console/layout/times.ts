/** Times as pages show them: how long ago, with the exact time as the title; and who wrote a row. */
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import { html, type Markup } from './markup.ts';

const steps: readonly (readonly [limitMs: number, unitMs: number, name: string])[] = [
  [90_000, 1000, 's'],
  [90 * 60_000, 60_000, 'min'],
  [36 * 3_600_000, 3_600_000, 'h'],
  [Infinity, 86_400_000, 'd'],
];

export function span(milliseconds: number): string {
  const size = Math.abs(milliseconds);
  const [, unitMs, name] = steps.find(([limit]) => size < limit) ?? [0, 1000, 's'];
  const count = Math.round(size / unitMs);
  if (name === 'd') return count === 1 ? '1 day' : `${count} days`;
  return `${count} ${name}`;
}

/** `3 min ago`, with the exact time as its title. */
export function when(timeMs: number, nowMs: number): Markup {
  const differenceMs = timeMs - nowMs;
  const words =
    Math.abs(differenceMs) < 1000
      ? 'now'
      : differenceMs < 0
        ? `${span(differenceMs)} ago`
        : `in ${span(differenceMs)}`;
  const exact = isoTime(timeMs);
  return html`<time datetime="${exact}" title="${exact}" data-sort="${timeMs}">${words}</time>`;
}

/** A time of a row, which may be anything. */
export function writtenTime(value: unknown, nowMs: number): Markup {
  const timeMs = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(timeMs) ? html`${value === undefined ? '–' : 'unreadable'}` : when(timeMs, nowMs);
}

/** Who wrote a row and when, by its notes. An ARN is shown by its end. */
export function written(
  { _by: by, _at: at }: Readonly<Record<string, unknown>>,
  nowMs: number,
): Markup | undefined {
  if (at === undefined && by === undefined) return undefined;
  const who = typeof by === 'string' ? by : '';
  const words = who.startsWith('arn:') ? who.slice(who.indexOf('/') + 1) : who;
  return html`${writtenTime(at, nowMs)} ${who === '' ? '' : html`by <span title="${who}">${words}</span>`}`;
}
