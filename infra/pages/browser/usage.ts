/** Shows usage by day and model, from the relay's sums. */
import type { AccountDay, AccountDays } from '../../../shared/wire/public-api.ts';
import { byId, choiceById, codeOf, element, dayOf, figuresRow, yuan, yuanColumn, svg } from './elements.ts';
import { count } from '../../../shared/relay/page/english.ts';
import { t } from './language.ts';

const namedMax = 6;
const daySeconds = 24 * 60 * 60;

const measures = {
  charge: { of: (day: AccountDay) => day.charge, words: yuan },
  calls: { of: (day: AccountDay) => day.calls, words: count },
  tokens: { of: (day: AccountDay) => day.prompt_tokens + day.completion_tokens, words: count },
};
type Measure = keyof typeof measures;

export const daysChosen = (): number => Number(choiceById('days').value);

export class UsageChart {
  #shown: AccountDays | null = null;

  /** @param choose is called when the customer chooses other days */
  constructor(ended: AbortSignal, choose: () => void) {
    byId('days').addEventListener('change', choose, { signal: ended });
    byId('measure').addEventListener('change', () => this.#draw(), { signal: ended });
    const resized = new ResizeObserver(() => this.#draw());
    resized.observe(byId('plot'));
    ended.addEventListener('abort', () => resized.disconnect());
  }

  show(days: AccountDays | null): void {
    this.#shown = days;
    this.#draw();
  }

  #draw(): void {
    const all = this.#shown?.data ?? [];
    const { of, words } = measures[choiceById('measure').value as Measure];
    const days = daysShown();
    const first = days[0] ?? 0;
    const used = all.filter(({ day }) => day >= first);
    const series = seriesOf(used, days, of);
    drawPlot(byId('plot'), { days, series, words });
    byId('by-model').replaceChildren(...tableRows(used, series));
    const calls = t().countCalls(total(used, measures.calls.of));
    const from = this.#shown?.from ?? first;
    byId('usage-state').textContent = from > first ? t().cutDays(calls, dayOf(from)) : calls;
  }
}

/** The beginnings of UTC days, the first one first. */
function daysShown(): number[] {
  const today = Math.floor(Date.now() / 1000 / daySeconds) * daySeconds;
  const length = daysChosen();
  return Array.from({ length }, (_, at) => today - (length - 1 - at) * daySeconds);
}

function seriesOf(used: AccountDay[], days: number[], of: (day: AccountDay) => number): Series[] {
  const named = byModel(used, of).map(({ name }) => name);
  const shown = named.slice(0, namedMax);
  const names = named.length > namedMax ? [...shown, t().others] : shown;
  const series = names.map((name) => ({ name, values: days.map(() => 0) }));
  for (const each of used) {
    const found = series[shown.includes(each.model) ? shown.indexOf(each.model) : namedMax];
    if (found) found.values[days.indexOf(each.day)]! += of(each);
  }
  return series;
}

function tableRows(used: AccountDay[], series: Series[]): HTMLElement[] {
  const rows = byModel(used, measures.charge.of);
  const written = yuanColumn(rows.map(({ sum }) => sum));
  return rows.map(({ name, parts, sum }) => {
    const at = series.findIndex((one) => one.name === name);
    const swatch = element('i', { className: `swatch c${at < 0 ? namedMax : at}` });
    const texts = [
      written(sum),
      count(total(parts, measures.calls.of)),
      count(total(parts, (day) => day.prompt_tokens)),
      count(total(parts, (day) => day.completion_tokens)),
    ];
    const names = [t().charges, t().calls, t().tokensIn, t().tokensOut];
    return figuresRow([swatch, codeOf(name)], names, texts);
  });
}

/** The largest first. */
const byModel = (used: AccountDay[], of: (day: AccountDay) => number) =>
  [...new Set(used.map(({ model }) => model))]
    .map((name) => ({ name, parts: used.filter(({ model }) => model === name) }))
    .map(({ name, parts }) => ({ name, parts, sum: total(parts, of) }))
    .toSorted((a, b) => b.sum - a.sum);

const total = (used: AccountDay[], of: (day: AccountDay) => number): number =>
  used.reduce((sum, day) => sum + of(day), 0);

// Bars by day, stacked by model. The table below the plot has the numbers.

interface Series {
  name: string;
  /** One for each day. */
  values: number[];
}

interface Plot {
  /** Their beginnings, in Unix seconds. */
  days: number[];
  series: Series[];
  words: (value: number) => string;
}

const height = 220;
const top = 12;
const bottom = 24;
const labelWidth = 72;

function drawPlot(place: HTMLElement, { days, series, words }: Plot): void {
  const width = Math.max(260, place.clientWidth);
  const totals = days.map((_, day) => series.reduce((sum, { values }) => sum + (values[day] ?? 0), 0));
  const most = roundUp(Math.max(...totals));
  const step = (width - labelWidth) / days.length;
  const y = (value: number): number => height - bottom - (value / most) * (height - bottom - top);
  const grid = [0, 0.5, 1].flatMap((share) => [
    svg('line', { x1: labelWidth, x2: width, y1: y(most * share), y2: y(most * share), class: 'grid' }),
    svg('text', { x: labelWidth - 8, y: y(most * share) + 4, 'text-anchor': 'end' }, [words(most * share)]),
  ]);
  // As many days are named as there is room for.
  const every = Math.ceil(64 / step);
  const bars = days.flatMap((day, at) => {
    const x = labelWidth + at * step;
    let below = 0;
    const parts = series.flatMap(({ name, values }, which) => {
      const value = values[at] ?? 0;
      if (value <= 0) return [];
      const [from, to] = [y(below), y((below += value))];
      const label = svg('title', {}, [t().onDay(dayOf(day), name, words(value))]);
      const shape = { x: x + step * 0.12, y: to, width: step * 0.76, height: Math.max(1, from - to) };
      return [svg('rect', { ...shape, class: `c${which}` }, [label])];
    });
    const isNamed = (days.length - 1 - at) % every === 0;
    if (!isNamed) return parts;
    // The last label would be cut off at the edge.
    const isLast = x + step / 2 > width - 28;
    const edge = isLast ? { x: width, 'text-anchor': 'end' } : { x: x + step / 2, 'text-anchor': 'middle' };
    return [...parts, svg('text', { ...edge, y: height - 6 }, [dayOf(day)])];
  });
  const sum = totals.reduce((all, value) => all + value, 0);
  const label = t().plot(words(sum), days.length);
  const size = { viewBox: `0 0 ${width} ${height}`, width, height };
  place.replaceChildren(svg('svg', { ...size, role: 'img', 'aria-label': label }, [...grid, ...bars]));
}

/** To one, two or five of a power of ten, so that the labels are short. */
function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= value) ?? value;
}
