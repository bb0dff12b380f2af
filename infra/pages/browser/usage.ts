/** Shows usage by day and model, from the relay's sums. */
import type { AccountDay, AccountDays } from '../../../shared/wire/public-api.ts';
import {
  byId,
  findSelect,
  codeOf,
  createNode,
  formatDay,
  createFiguresRow,
  formatYuan,
  formatYuanColumn,
  createSvg,
} from './elements.ts';
import { formatCount } from '../../../shared/relay/page/english.ts';
import { t } from './language.ts';

const namedMax = 6;
const daySeconds = 24 * 60 * 60;

const measures = {
  charge: { of: (day: AccountDay) => day.charge, words: formatYuan },
  calls: { of: (day: AccountDay) => day.calls, words: formatCount },
  tokens: { of: (day: AccountDay) => day.prompt_tokens + day.completion_tokens, words: formatCount },
};
type Measure = keyof typeof measures;

export const readDays = (): number => Number(findSelect('days').value);

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
    const { of, words } = measures[findSelect('measure').value as Measure];
    const days = listDays();
    const first = days[0] ?? 0;
    const used = all.filter(({ day }) => day >= first);
    const series = buildSeries(used, days, of);
    drawPlot(byId('plot'), { days, series, words });
    byId('by-model').replaceChildren(...createRows(used, series));
    const calls = t().countCalls(sumDays(used, measures.calls.of));
    const from = this.#shown?.from ?? first;
    byId('usage-state').textContent = from > first ? t().cutDays(calls, formatDay(from)) : calls;
  }
}

/** The beginnings of UTC days, the first one first. */
function listDays(): number[] {
  const today = Math.floor(Date.now() / 1000 / daySeconds) * daySeconds;
  const length = readDays();
  return Array.from({ length }, (_, at) => today - (length - 1 - at) * daySeconds);
}

function buildSeries(used: AccountDay[], days: number[], of: (day: AccountDay) => number): Series[] {
  const named = groupByModel(used, of).map(({ name }) => name);
  const shown = named.slice(0, namedMax);
  const names = named.length > namedMax ? [...shown, t().others] : shown;
  const series = names.map((name) => ({ name, values: days.map(() => 0) }));
  for (const each of used) {
    const found = series[shown.includes(each.model) ? shown.indexOf(each.model) : namedMax];
    if (found) found.values[days.indexOf(each.day)]! += of(each);
  }
  return series;
}

function createRows(used: AccountDay[], series: Series[]): HTMLElement[] {
  const rows = groupByModel(used, measures.charge.of);
  const written = formatYuanColumn(rows.map(({ sum }) => sum));
  return rows.map(({ name, parts, sum }) => {
    const at = series.findIndex((one) => one.name === name);
    const swatch = createNode('i', { className: `swatch c${at < 0 ? namedMax : at}` });
    const texts = [
      written(sum),
      formatCount(sumDays(parts, measures.calls.of)),
      formatCount(sumDays(parts, (day) => day.prompt_tokens)),
      formatCount(sumDays(parts, (day) => day.completion_tokens)),
    ];
    const names = [t().charges, t().calls, t().tokensIn, t().tokensOut];
    return createFiguresRow([swatch, codeOf(name)], names, texts);
  });
}

/** The largest first. */
const groupByModel = (used: AccountDay[], of: (day: AccountDay) => number) =>
  [...new Set(used.map(({ model }) => model))]
    .map((name) => ({ name, parts: used.filter(({ model }) => model === name) }))
    .map(({ name, parts }) => ({ name, parts, sum: sumDays(parts, of) }))
    .toSorted((a, b) => b.sum - a.sum);

const sumDays = (used: AccountDay[], of: (day: AccountDay) => number): number =>
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
    createSvg('line', { x1: labelWidth, x2: width, y1: y(most * share), y2: y(most * share), class: 'grid' }),
    createSvg('text', { x: labelWidth - 8, y: y(most * share) + 4, 'text-anchor': 'end' }, [
      words(most * share),
    ]),
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
      const label = createSvg('title', {}, [t().onDay(formatDay(day), name, words(value))]);
      const shape = { x: x + step * 0.12, y: to, width: step * 0.76, height: Math.max(1, from - to) };
      return [createSvg('rect', { ...shape, class: `c${which}` }, [label])];
    });
    const isNamed = (days.length - 1 - at) % every === 0;
    if (!isNamed) return parts;
    // The last label would be cut off at the edge.
    const isLast = x + step / 2 > width - 28;
    const edge = isLast ? { x: width, 'text-anchor': 'end' } : { x: x + step / 2, 'text-anchor': 'middle' };
    return [...parts, createSvg('text', { ...edge, y: height - 6 }, [formatDay(day)])];
  });
  const sum = totals.reduce((all, value) => all + value, 0);
  const label = t().plot(words(sum), days.length);
  const size = { viewBox: `0 0 ${width} ${height}`, width, height };
  place.replaceChildren(createSvg('svg', { ...size, role: 'img', 'aria-label': label }, [...grid, ...bars]));
}

/** To one, two or five of a power of ten, so that the labels are short. */
function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= value) ?? value;
}
