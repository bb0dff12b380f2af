/** Plots as SVG, drawn by hand: lines over time, with bands behind them. */

export interface Series {
  name: string;
  colour: string;
  /** Seconds since the start, and the value. */
  points: readonly (readonly [number, number])[];
}

export interface Plot {
  title: string;
  /** Label of the values. */
  unit: string;
  seconds: number;
  series: readonly Series[];
  /** Times of faults: from and until, in seconds. */
  bands?: readonly (readonly [number, number])[];
  /** Label of the bands. */
  bandsName?: string;
}

const width = 860;
const height = 260;
const left = 56;
const right = 12;
const top = 44;
const bottom = 34;
/** More points would merge into one line. */
const pointsMax = 430;

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const short = (value: number): string => String(Number(value.toFixed(1)));

/** 1, 2 or 5 times a power of ten: the first that gives at most five steps. */
export function stepFor(most: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(most, 1e-9) / 5));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => most / step <= 5) ?? most;
}

/** Averages neighbours if there are too many points. */
function thinned(points: Series['points']): Series['points'] {
  const each = Math.ceil(points.length / pointsMax);
  if (each <= 1) return points;
  return Array.from({ length: Math.ceil(points.length / each) }, (_, at) => {
    const group = points.slice(at * each, (at + 1) * each);
    const mean = (index: 0 | 1): number => group.reduce((sum, point) => sum + point[index], 0) / group.length;
    return [mean(0), mean(1)] as const;
  });
}

export function plotSvg({ title, unit, seconds, series, bands = [], bandsName }: Plot): string {
  const most = Math.max(1e-9, ...series.flatMap(({ points }) => points.map(([, value]) => value)));
  const step = stepFor(most);
  const roof = Math.ceil(most / step) * step;
  const x = (second: number): string =>
    short(left + (second / Math.max(seconds, 1)) * (width - left - right));
  const y = (value: number): string => short(height - bottom - (value / roof) * (height - top - bottom));
  const rows = Array.from({ length: Math.round(roof / step) + 1 }, (_, at) => at * step);
  const timeStep = stepFor(seconds / 60) * 60;
  const times = Array.from({ length: Math.floor(seconds / timeStep) + 1 }, (_, at) => at * timeStep);
  const text = (
    at: { x: string | number; y: string | number; anchor: string },
    words: string,
    fill = '#555',
  ): string =>
    `<text x="${at.x}" y="${at.y}" text-anchor="${at.anchor}" fill="${fill}">${escaped(words)}</text>`;
  const names = [
    ...series.map(({ name, colour }) => [name, colour] as const),
    ...(bandsName === undefined ? [] : [[bandsName, '#b8a060'] as const]),
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...bands.map(([from, until]) => {
      const start = x(Math.max(0, from));
      const wide = Math.max(0.5, Number(x(Math.min(seconds, until))) - Number(start));
      return `<rect x="${start}" y="${top}" width="${short(wide)}" height="${height - top - bottom}" fill="#f3ead2"/>`;
    }),
    `<text x="${left}" y="16" font-size="13" fill="#222">${escaped(`${title}, ${unit}`)}</text>`,
    ...names.map(([name, colour], at) => text({ x: left + at * 130, y: 33, anchor: 'start' }, name, colour)),
    ...rows.map(
      (row) =>
        `<path d="M${left} ${y(row)}H${width - right}" stroke="#ddd"/>${text({ x: left - 6, y: y(row), anchor: 'end' }, short(row))}`,
    ),
    ...times.map((time) => text({ x: x(time), y: height - 14, anchor: 'middle' }, `${short(time / 60)} min`)),
    ...series.map(({ colour, points }) => {
      const line = thinned(points).map(([second, value]) => `${x(second)} ${y(value)}`);
      return `<path d="M${line.join('L') || '0 0'}" fill="none" stroke="${colour}" stroke-width="1.2"/>`;
    }),
    '</svg>',
    '',
  ].join('\n');
}
