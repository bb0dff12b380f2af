/** The result of a comparison: ratios of the same round, as Markdown and as a chart. */
import { quantile } from '../start-cost.ts';
import { figures, type Figure, type Figures } from './measures.ts';
import type { Target } from './stand.ts';

export type Name = Target['name'];
export type Round = Record<Name, Figures>;

/** Times count without the upstream's own part. */
const added: ReadonlySet<Figure> = new Set(['plainMs', 'firstContentMs', 'chunkMs']);

const figureOf = (round: Round, name: Name, figure: Figure): number =>
  round[name][figure] - (added.has(figure) ? round.direct[figure] : 0);

interface Spread {
  middle: number;
  low: number;
  high: number;
}

const spread = (values: number[]): Spread => ({
  middle: quantile(values, 0.5),
  low: quantile(values, 0.1),
  high: quantile(values, 0.9),
});

const valuesOf = (rounds: Round[], name: Name, figure: Figure): Spread =>
  spread(rounds.map((round) => figureOf(round, name, figure)));
const ratioOf = (rounds: Round[], base: Name, figure: Figure): Spread =>
  spread(rounds.map((round) => figureOf(round, 'relay', figure) / figureOf(round, base, figure)));

const number = (value: number): string => (Math.abs(value) < 10 ? value.toFixed(2) : value.toFixed(1));
const shown = ({ middle, low, high }: Spread): string =>
  `${number(middle)} (${number(low)}..${number(high)})`;

export interface Conditions {
  machine: string;
  date: string;
  /** Cores that other programs used before each round. */
  others: number[];
}

const rows = Object.keys(figures) as Figure[];
const title = (figure: Figure): string => `${added.has(figure) ? 'added ' : ''}${figures[figure]}`;

export function markdown(rounds: Round[], { machine, date, others }: Conditions): string {
  const table = rows.map((figure) => {
    const middles = (['pipe', 'floor', 'relay'] as const).map((name) =>
      shown(valuesOf(rounds, name, figure)),
    );
    const ratios = (['floor', 'pipe'] as const).map((base) => shown(ratioOf(rounds, base, figure)));
    return `| ${[title(figure), ...middles, ...ratios].join(' | ')} |`;
  });
  return [
    `${rounds.length} rounds on ${date}, ${machine}; other programs used ${number(quantile(others, 0.5))} cores (at most ${number(Math.max(...others))}).`,
    'Median, in brackets the middle 80 % of the rounds; a ratio is of one round.',
    '',
    '| at one connection | pipe | floor | relay | relay / floor | relay / pipe |',
    '| --- | --- | --- | --- | --- | --- |',
    ...table,
    '',
  ].join('\n');
}

const width = 760;
const left = 300;
const bar = 12;
const rowHeight = 52;
const colours: Record<'pipe' | 'floor' | 'relay', string> = { pipe: '#9bb', floor: '#79a', relay: '#247' };

/** Bars of the three programs for each figure, in multiples of the floor. */
export function chart(rounds: Round[], { machine, date }: Conditions): string {
  const names = ['pipe', 'floor', 'relay'] as const;
  const inFloors = (name: Name, figure: Figure): Spread =>
    spread(rounds.map((round) => figureOf(round, name, figure) / figureOf(round, 'floor', figure)));
  const most = Math.max(...rows.flatMap((figure) => names.map((name) => inFloors(name, figure).high)));
  const x = (value: number): number => Math.round(left + (Math.max(0, value) / most) * (width - left - 60));
  const text = (at: [number, number], words: string, more = ''): string =>
    `<text x="${at[0]}" y="${at[1]}" ${more}>${words}</text>`;
  const body = rows.flatMap((figure, row) => {
    const top = 44 + row * rowHeight;
    return [
      text([left - 8, top + 23], title(figure), 'text-anchor="end"'),
      ...names.flatMap((name, index) => {
        const { middle, low, high } = inFloors(name, figure);
        const y = top + index * (bar + 2);
        return [
          `<rect x="${left}" y="${y}" width="${x(middle) - left}" height="${bar}" fill="${colours[name]}"/>`,
          `<path d="M${x(low)} ${y + bar / 2}H${x(high)}" stroke="#c63" stroke-width="2"/>`,
          text([Math.max(x(high), x(middle)) + 6, y + bar - 2], `${name} ${middle.toFixed(2)}`),
        ];
      }),
    ];
  });
  const height = 60 + rows.length * rowHeight;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11" fill="#222">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    text(
      [16, 22],
      `Multiples of the floor, at one connection. ${rounds.length} rounds, ${date}, ${machine}`,
      'font-size="13"',
    ),
    ...body,
    '</svg>',
    '',
  ].join('\n');
}
