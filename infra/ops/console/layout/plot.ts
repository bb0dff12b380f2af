/** Renders plots over time as SVG bars or lines, without script: each point shows its figures in a tooltip. */
import { convertToYuanNumber, parseYuan } from '../../../../shared/billing/money.ts';
import type { DailyFigures } from '../../../../shared/billing/daily-figures.ts';
import { summarizeAttempts } from '../../../../shared/operate/channels/channel-health.ts';
import type { RequestPoint } from '../../../../shared/operate/requests/list-requests.ts';
import { html, nothing, type Markup } from '../../markup.ts';
import { formatShort, formatYuanShort } from './figures.ts';
import { head, number, renderTable } from './table.ts';

interface Plot {
  title: string;
  unit: string;
  /** In UTC: `2026-11-22`, or `2026-11-22 09:41`. */
  points: readonly string[];
  series: readonly Series[];
}

interface Series {
  name: string;
  tone: 'first' | 'second' | 'third' | 'bad';
  isLine?: boolean;
  format?: (value: number) => string;
  /** One for each point. */
  values: readonly (number | null)[];
}

const size = { width: 720, height: 210, left: 76, right: 16, top: 16, bottom: 34 };
const plotWidth = size.width - size.left - size.right;
const plotHeight = size.height - size.top - size.bottom;
const labelsMax = 7;

/** With the last figures in a table below it. */
export function renderPlot({ title, unit, points, series }: Plot): Markup {
  const ticks = listTicks(Math.max(0, ...series.flatMap(({ values }) => values.map((value) => value ?? 0))));
  const scale = {
    step: plotWidth / points.length,
    yOf: (value: number) => round(size.top + plotHeight * (1 - Math.max(0, value) / (ticks.at(-1) ?? 1))),
  };
  const every = Math.ceil(points.length / labelsMax);
  const bars = series.filter(({ isLine }) => !isLine);
  return html`<figure class="plot">
    <figcaption>${title} <span class="unit">${unit}</span></figcaption>
    <ul class="legend">
      ${series.map((each) => html`<li class="${each.tone}">${each.name} <b>${summarizeSeries(each)}</b></li>`)}
    </ul>
    <svg viewBox="0 0 ${size.width} ${size.height}" role="img" aria-label="${title}: see the figures below">
      ${ticks.map((tick) => renderGridLine(scale.yOf(tick), formatShort(tick)))}
      ${points.map(
        (point, at) =>
          html`<g ${isTime(point) && html`data-utc="${point}"`}>
            <title>
              ${point}:
              ${series.map((each) => `${each.name} ${formatPoint(each, each.values[at])}`).join(', ')}
            </title>
            <rect
              class="reach"
              x="${round(size.left + at * scale.step)}"
              y="${size.top}"
              width="${round(scale.step)}"
              height="${plotHeight}"
            />
            ${bars.map(({ tone, values }, index) => renderBar(tone, values[at] ?? 0, { at, index, of: bars.length, ...scale }))}
            ${at % every === 0 && renderPointLabel(point, size.left + (at + 0.5) * scale.step)}</g
          >`,
      )}
      ${series.map((each) => (each.isLine ? renderLine(each, scale) : nothing))}
    </svg>
    ${renderFigures({ title, points, series })}
  </figure>`;
}

/** Renders small bars without axes, to show a trend beside a name in a table. The last bar is the current period. */
export function renderSparkline(values: readonly number[], about: string): Markup {
  const most = Math.max(...values);
  if (!(most > 0)) return nothing;
  return html`<svg
    class="spark"
    viewBox="0 0 ${values.length} 1"
    preserveAspectRatio="none"
    role="img"
    aria-label="${about}: ${values.map(formatShort).join(', ')}"
  >
    ${values.map((value, at) => {
      const height = Math.max(value > 0 ? 0.08 : 0, value / most);
      return html`<rect
        x="${at + 0.1}"
        y="${(1 - height).toFixed(2)}"
        width=".8"
        height="${height.toFixed(2)}"
      />`;
    })}
  </svg>`;
}

const isTime = (point: string): boolean => point.includes(' ');

/** Shown in the legend: the sum of bars, the last value of a line. */
const summarizeSeries = (series: Series): string =>
  formatPoint(
    series,
    series.isLine
      ? series.values.findLast((value) => value !== null)
      : series.values.reduce<number>((sum, value) => sum + (value ?? 0), 0),
  );

/** More points than a table of a page shows. */
const tableRowsMax = 24;

function renderFigures({ title, points, series }: Omit<Plot, 'unit'>): Markup {
  const last = points.map((point, at) => ({ point, at })).slice(-tableRowsMax);
  return html`<details>
    <summary>Figures</summary>
    ${renderTable(last, {
      caption: `${title}, figures`,
      empty: nothing,
      isPlain: true,
      columns: [
        head(points.some(isTime) ? 'Time (UTC)' : 'Day, UTC', ({ point }) =>
          isTime(point) ? html`<time datetime="${point.replace(' ', 'T')}Z">${point}</time>` : point,
        ),
        ...series.map((each) =>
          number<(typeof last)[number]>(each.name, ({ at }) => formatPoint(each, each.values[at])),
        ),
      ],
    })}
  </details>`;
}

type DatedFigures = readonly { figures: DailyFigures }[];

export const renderCallsPlot = (all: DatedFigures, points: readonly string[], unit: string): Markup =>
  renderPlot({
    title: 'Calls',
    unit,
    points,
    series: [
      { name: 'calls', tone: 'first', values: all.map(({ figures }) => figures.counts.calls ?? 0) },
      { name: 'failed', tone: 'bad', values: all.map(({ figures }) => figures.counts.failures ?? 0) },
    ],
  });

const outcomes = [
  ['answered', 'first'],
  ['refused', 'second'],
  ['failed', 'bad'],
] as const;

export const renderOutcomesPlot = (all: readonly RequestPoint[], points: readonly string[]): Markup =>
  renderPlot({
    title: 'Requests',
    unit: 'per interval',
    points,
    series: outcomes.map(([name, tone]) => ({ name, tone, values: all.map((point) => point[name]) })),
  });

export const renderChargesPlot = (all: DatedFigures, points: readonly string[], unit: string): Markup => {
  const values = all.map(({ figures }) => convertToYuanNumber(figures.amounts.charged ?? 0n));
  return renderPlot({
    title: 'Charged',
    unit,
    points,
    series: [{ name: 'charged', tone: 'third', values, format: formatYuanNumber }],
  });
};

export const renderFirstContentPlot = (all: DatedFigures, points: readonly string[]): Markup => {
  const readTimes = (name: 'p50Ms' | 'p95Ms') =>
    all.map(({ figures }) => summarizeAttempts(figures)[name] ?? null);
  return renderPlot({
    title: 'Time to first content',
    unit: 'ms',
    points,
    series: [
      { name: 'p50', tone: 'first', isLine: true, values: readTimes('p50Ms') },
      { name: 'p95', tone: 'second', isLine: true, values: readTimes('p95Ms') },
    ],
  });
};

const formatYuanNumber = (yuan: number): string => formatYuanShort(parseYuan(yuan.toFixed(9)) ?? 0n);

interface Scale {
  step: number;
  yOf: (value: number) => number;
}

function renderBar(
  tone: string,
  value: number,
  { at, index, of, step, yOf }: Scale & { at: number; index: number; of: number },
): Markup {
  const width = Math.min(30, (step * 0.72) / of);
  const x = size.left + (at + 0.5) * step + (index - of / 2) * width;
  const y = yOf(value);
  return html`<rect
    class="${tone}"
    x="${round(x)}"
    y="${y}"
    width="${round(Math.max(1, width - 1))}"
    height="${round(size.top + plotHeight - y)}"
  />`;
}

/** Through the points that are known. */
const renderLine = ({ tone, values }: Series, { step, yOf }: Scale): Markup =>
  html`<polyline
    class="${tone}"
    points="${values
      .flatMap((value, at) => (value === null ? [] : `${round(size.left + (at + 0.5) * step)},${yOf(value)}`))
      .join(' ')}"
  />`;

const renderGridLine = (y: number, label: string): Markup =>
  html`<line class="grid" x1="${size.left}" x2="${size.width - size.right}" y1="${y}" y2="${y}" /><text
      class="tick"
      x="${size.left - 6}"
      y="${round(y + 4)}"
      text-anchor="end"
      >${label}</text
    >`;

/** Writes days as `11-22`, since some would read `22.11.` as a price, and a day's first time as its day. */
function renderPointLabel(point: string, x: number): Markup {
  const [day = '', time = '00:00'] = point.split(' ');
  const words = time === '00:00' ? day.slice(5) : time;
  return html`<text class="tick" x="${round(x)}" y="${size.height - 6}" text-anchor="middle">${words}</text>`;
}

const formatPoint = ({ format = formatShort }: Series, value: number | null | undefined): string =>
  value === null || value === undefined ? '–' : format(value);

const round = (value: number): number => Math.round(value * 10) / 10;

/** From 0 in at most five steps of 1, 2 or 5 times a power of ten. */
function listTicks(most: number): number[] {
  if (!(most > 0)) return [0, 1];
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((each) => each * power >= rough) ?? 10) * power;
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)));
}
