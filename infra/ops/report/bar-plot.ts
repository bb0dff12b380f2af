/** Draws bars by day as SVG: numbers in, markup out. Needs no script; each bar says its figures when pointed at. */
import { html, type Markup } from '../markup.ts';

export interface BarSeries {
  name: string;
  tone: 'first' | 'second' | 'bad';
  values: readonly number[];
}

export interface BarPlot {
  title: string;
  unit: string;
  /** `2026-11-22` */
  days: readonly string[];
  series: readonly BarSeries[];
  words: (value: number) => string;
}

const size = { width: 720, height: 200, left: 58, right: 8, top: 12, bottom: 24 };
const plotWidth = size.width - size.left - size.right;
const plotHeight = size.height - size.top - size.bottom;
const labelsMax = 7;

export function barPlot(plot: BarPlot): Markup {
  const { title, unit, days, series, words } = plot;
  const ticks = ticksUpTo(Math.max(0, ...series.flatMap(({ values }) => values)));
  const top = ticks.at(-1) ?? 1;
  const yOf = (value: number): number => size.top + plotHeight * (1 - Math.max(0, value) / top);
  const step = plotWidth / days.length;
  const every = Math.ceil(days.length / labelsMax);
  const legend =
    series.length < 2 ? [] : series.map(({ name, tone }) => html`<li class="${tone}">${name}</li>`);
  return html`<figure class="plot">
    <figcaption>${title} <span class="unit">${unit}</span></figcaption>
    ${
      legend.length > 0
        ? html`<ul class="legend">
            ${legend}
          </ul>`
        : ''
    }
    <svg
      viewBox="0 0 ${size.width} ${size.height}"
      role="img"
      aria-label="${title} by day: the figures are in the table below"
    >
      ${ticks.map((tick) => gridLine(yOf(tick), words(tick)))}
      ${days.map(
        (day, at) =>
          html`<g>
            <title>
              ${day}: ${series.map(({ name, values }) => `${name} ${words(values[at] ?? 0)}`).join(', ')}
            </title>
            <rect
              class="reach"
              x="${round(size.left + at * step)}"
              y="${size.top}"
              width="${round(step)}"
              height="${plotHeight}"
            />
            ${barsOf(plot, { at, step, yOf })}
            ${at % every === 0 ? dayLabel(day, size.left + (at + 0.5) * step) : ''}</g
          >`,
      )}
    </svg>
  </figure>`;
}

interface Place {
  at: number;
  step: number;
  yOf: (value: number) => number;
}

function barsOf({ series }: BarPlot, { at, step, yOf }: Place): Markup[] {
  const width = Math.min(30, (step * 0.72) / series.length);
  const left = size.left + (at + 0.5) * step - (width * series.length) / 2;
  return series.map(({ tone, values }, index) => {
    const y = yOf(values[at] ?? 0);
    const height = size.top + plotHeight - y;
    return html`<rect
      class="${tone}"
      x="${round(left + index * width)}"
      y="${round(y)}"
      width="${round(Math.max(1, width - 1))}"
      height="${round(height)}"
    />`;
  });
}

const gridLine = (y: number, label: string): Markup =>
  html`<line
      class="grid"
      x1="${size.left}"
      x2="${size.width - size.right}"
      y1="${round(y)}"
      y2="${round(y)}"
    /><text class="tick" x="${size.left - 6}" y="${round(y + 4)}" text-anchor="end">${label}</text> `;

/** `22.11.` would be read as a price by some; `11-22` sorts as it reads. */
const dayLabel = (day: string, x: number): Markup =>
  html`<text class="tick" x="${round(x)}" y="${size.height - 6}" text-anchor="middle">${day.slice(5)}</text>`;

const round = (value: number): number => Math.round(value * 10) / 10;

/** From 0 in at most five steps of 1, 2 or 5 times a power of ten. */
export function ticksUpTo(most: number): number[] {
  if (!(most > 0)) return [0, 1];
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((each) => each * power >= rough) ?? 10) * power;
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}
