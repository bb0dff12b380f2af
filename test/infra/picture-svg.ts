/** Draws the widgets of the dashboard as one SVG, at the places where CloudWatch puts them. */
import type { MetricValue } from '../support/embedded-metrics.ts';
import type { Widget } from './dashboard-body.ts';
import { seriesOf, type Series, type Span } from './picture-series.ts';

const columnWidth = 50;
const rowHeight = 34;
const gap = 8;
const titleHeight = 26;
const palette = ['#1f77b4', '#ff7f0e', '#2ca02c', '#d62728', '#9467bd', '#8c564b', '#e377c2', '#7f7f7f'];
const frame = 'fill="#fff" stroke="#d5dbdb"';

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Widgets of AWS's own metrics are named at the foot: a local run has nothing to show in them. */
export function drawDashboard(widgets: Widget[], values: MetricValue[], span: Span): string {
  const drawn = widgets.map((widget) => ({ widget, series: seriesOf(widget, values, span) }));
  const filled = drawn.filter(({ series }) => series.length > 0);
  const absent = drawn.flatMap(({ widget, series }) =>
    series.length === 0 ? (widget.properties.title ?? '') : [],
  );
  const bottom = Math.max(...filled.map(({ widget }) => (widget.y + widget.height) * rowHeight)) + gap;
  const height = bottom + 34;
  const cards = filled.map(({ widget, series }) => card(widget, series, values, span));
  const foot = text(
    gap + 4,
    bottom + 14,
    `Below these, from AWS’s own metrics: ${absent.join(' · ')}`,
    12,
    '#545b64',
  );
  const width = 24 * columnWidth + gap;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" ` +
      `font-family="Helvetica, Arial, sans-serif">`,
    `<rect width="${width}" height="${height}" fill="#f2f3f3"/>`,
    ...cards,
    foot,
    '</svg>\n',
  ].join('\n');
}

function card(widget: Widget, series: Series[], values: MetricValue[], span: Span): string {
  const box = {
    x: widget.x * columnWidth + gap,
    y: widget.y * rowHeight + gap,
    width: widget.width * columnWidth - gap,
    height: widget.height * rowHeight - gap,
  };
  const { title = '', view } = widget.properties;
  const content =
    view === 'singleValue'
      ? bigNumber(box, seriesOf(widget, values, { ...span, steps: 1, stepMs: span.steps * span.stepMs }))
      : graph(box, widget, series, span);
  return [
    `<rect x="${box.x}" y="${box.y}" width="${box.width}" height="${box.height}" ${frame}/>`,
    text(box.x + 10, box.y + 18, title, 13, '#16191f', 'font-weight="bold"'),
    content,
  ].join('\n');
}

function bigNumber({ x, y, height }: Box, [series]: Series[]): string {
  const value = series?.points[0] ?? 0;
  return [
    text(x + 14, y + height - 32, short(value), 38, '#16191f'),
    text(x + 14, y + height - 12, series?.label ?? '', 12, '#545b64'),
  ].join('\n');
}

function graph(box: Box, { properties }: Widget, series: Series[], span: Span): string {
  const legend = legendOf(box, series);
  const plot = {
    x: box.x + 46,
    y: box.y + titleHeight + 8,
    width: box.width - 62,
    height: box.height - titleHeight - 30 - legend.height,
  };
  const stacked = properties.stacked === true;
  const layers = stacked ? stack(series) : series;
  const highest = Math.max(0, ...layers.flatMap(({ points }) => points.map((point) => point ?? 0)));
  const top = properties.yAxis?.left?.max ?? roundUp(highest);
  const place = (step: number, value: number): string =>
    `${fixed(plot.x + (step / Math.max(1, span.steps - 1)) * plot.width)},${fixed(plot.y + plot.height - (value / top) * plot.height)}`;
  const lines = layers.map(({ points }, index) => {
    const color = colorOf(series[index], index);
    if (!stacked)
      return runsOf(points)
        .map((run) => line(run, place, color))
        .join('\n');
    const below = layers[index - 1]?.points ?? [];
    return area(points, below, place, color);
  });
  return [axes(plot, top, span), ...(stacked ? lines.toReversed() : lines), legend.drawn].join('\n');
}

/** Each layer on top of those before it. */
function stack(series: Series[]): Series[] {
  let below: number[] = [];
  return series.map((layer) => {
    below = layer.points.map((point, step) => (point ?? 0) + (below[step] ?? 0));
    return { ...layer, points: below };
  });
}

type Run = [step: number, value: number][];

/** Points that are joined: a gap of more than some steps stays a gap. */
function runsOf(points: Series['points']): Run[] {
  const runs: Run[] = [];
  for (const [step, value] of points.entries()) {
    if (value === undefined) continue;
    const run = runs.at(-1);
    const last = run?.at(-1);
    if (run && last && step - last[0] <= 3) run.push([step, value]);
    else runs.push([[step, value]]);
  }
  return runs;
}

function line(run: Run, place: (step: number, value: number) => string, color: string): string {
  const points = run.map(([step, value]) => place(step, value));
  if (points.length === 1) {
    const [x, y] = String(points[0]).split(',');
    return `<circle cx="${x}" cy="${y}" r="2" fill="${color}"/>`;
  }
  return `<polyline points="${points.join(' ')}" fill="none" stroke="${color}" stroke-width="1.6" stroke-linejoin="round"/>`;
}

function area(
  points: Series['points'],
  below: Series['points'],
  place: (step: number, value: number) => string,
  color: string,
): string {
  const upper = points.map((value, step) => place(step, value ?? 0));
  const lower = points.map((_, step) => place(step, below[step] ?? 0)).toReversed();
  return `<polygon points="${[...upper, ...lower].join(' ')}" fill="${color}" fill-opacity="0.55" stroke="${color}" stroke-width="1"/>`;
}

function axes({ x, y, width, height }: Box, top: number, { steps, stepMs }: Span): string {
  const levels = [0, 0.5, 1].map((share) => {
    const at = fixed(y + height - share * height);
    return (
      `<line x1="${x}" x2="${x + width}" y1="${at}" y2="${at}" stroke="#eaeded"/>` +
      text(x - 6, at + 4, short(share * top), 11, '#687078', 'text-anchor="end"')
    );
  });
  const seconds = ((steps - 1) * stepMs) / 1000;
  const halfMinutes = Array.from({ length: Math.floor(seconds / 30) + 1 }, (_, index) => index * 30);
  const times = halfMinutes.map((at) =>
    text(x + (at / seconds) * width, y + height + 15, clock(at), 11, '#687078', 'text-anchor="middle"'),
  );
  return [...levels, ...times].join('\n');
}

function legendOf({ x, y, width, height }: Box, series: Series[]): { drawn: string; height: number } {
  let at = 0;
  let row = 0;
  const marks = series.map((one, index) => {
    const needed = 22 + one.label.length * 5.9;
    if (at > 0 && at + needed > width - 24) [at, row] = [0, row + 1];
    const mark = { one, index, left: x + 12 + at, row };
    at += needed;
    return mark;
  });
  const drawn = marks.map(({ one, index, left, row: of }) => {
    const baseline = y + height - 9 - (row - of) * 15;
    return (
      `<rect x="${fixed(left)}" y="${baseline - 9}" width="10" height="10" fill="${colorOf(one, index)}"/>` +
      text(left + 14, baseline, one.label, 11, '#16191f')
    );
  });
  return { drawn: drawn.join('\n'), height: (row + 1) * 15 };
}

const colorOf = (series: Series | undefined, index: number): string =>
  series?.color ?? palette[index % palette.length] ?? '#000';

const clock = (seconds: number): string =>
  `${Math.floor(seconds / 60)}:${String(Math.round(seconds % 60)).padStart(2, '0')}`;

const roundFactors = [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

/** The next round number. */
function roundUp(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return (roundFactors.find((factor) => factor * power >= value) ?? 10) * power;
}

const short = (value: number): string =>
  value >= 10_000 ? `${Number((value / 1000).toPrecision(3))}k` : String(Number(value.toPrecision(3)));

const fixed = (value: number): number => Number(value.toFixed(1));

function text(x: number, y: number, content: string, size: number, color: string, more = ''): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${fixed(x)}" y="${fixed(y)}" font-size="${size}" fill="${color}" ${more}>${escaped}</text>`;
}
