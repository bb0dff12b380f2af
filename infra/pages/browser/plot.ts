/** Bars by day, one part for each model. The table below the plot says the same in numbers. */
import { svg } from './elements.ts';
import { dayOf } from './words.ts';

export interface Series {
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

export function drawPlot(place: HTMLElement, { days, series, words }: Plot): void {
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
      const label = svg('title', {}, [`${dayOf(day)}, ${name}: ${words(value)}`]);
      const shape = { x: x + step * 0.12, y: to, width: step * 0.76, height: Math.max(1, from - to) };
      return [svg('rect', { ...shape, class: `c${which}` }, [label])];
    });
    const isNamed = (days.length - 1 - at) % every === 0;
    if (!isNamed) return parts;
    // The last name would be cut at the edge.
    const isLast = x + step / 2 > width - 28;
    const edge = isLast ? { x: width, 'text-anchor': 'end' } : { x: x + step / 2, 'text-anchor': 'middle' };
    return [...parts, svg('text', { ...edge, y: height - 6 }, [dayOf(day)])];
  });
  const sum = totals.reduce((all, value) => all + value, 0);
  const label = `By day: ${words(sum)} in ${days.length} days. The table below has the numbers by model.`;
  const size = { viewBox: `0 0 ${width} ${height}`, width, height };
  place.replaceChildren(svg('svg', { ...size, role: 'img', 'aria-label': label }, [...grid, ...bars]));
}

/** To one, two or five of a power of ten, so that the labels are short. */
function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= value) ?? value;
}
