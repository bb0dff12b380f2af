/** Columns of sums: calls, tokens, times and amounts stand in every table under the same titles, and sort the same. */
import type { DailyFigures } from '../../../../shared/billing/daily/daily-figures.ts';
import { firstContentWithin } from '../../../../shared/operate/overview/first-content-time.ts';
import { grouped, milliseconds, percent, short, yuan } from './figures.ts';
import { margin } from './margin.ts';
import type { Column } from './table.ts';

type CountName = keyof DailyFigures['counts'];

export function figureColumns<Row>(of: (row: Row) => DailyFigures) {
  const count = (row: Row, name: CountName): number => of(row).counts[name] ?? 0;
  const tokens = (title: string, name: CountName, about = 'tokens'): Column<Row> => ({
    title,
    isNumber: true,
    about,
    show: (row) => short(count(row, name)),
    sortBy: (row) => count(row, name),
  });
  return {
    calls: {
      title: 'Calls',
      isNumber: true,
      show: (row) => grouped(count(row, 'calls')),
      sortBy: (row) => count(row, 'calls'),
    },
    failed: {
      title: 'Failed',
      isNumber: true,
      show: (row) => percent(count(row, 'failures'), count(row, 'calls')),
      sortBy: (row) => count(row, 'failures') / Math.max(1, count(row, 'calls')),
    },
    input: tokens('Input', 'prompt_tokens'),
    cached: tokens('Cached', 'cached_tokens', 'tokens of the input'),
    output: tokens('Output', 'completion_tokens'),
    firstContent: {
      title: 'First content, 95 %',
      isNumber: true,
      show(row) {
        const within = firstContentWithin(of(row), 0.95);
        return within === undefined ? '–' : `≤ ${milliseconds(within)}`;
      },
      sortBy: (row) => firstContentWithin(of(row), 0.95) ?? 0,
    },
    charged: { title: 'Charged', isNumber: true, show: (row) => yuan(of(row).amounts.charged ?? 0n) },
    margin: {
      title: 'Margin',
      isNumber: true,
      about: 'of the calls whose cost is known',
      show: (row) => margin(of(row)),
    },
  } satisfies Record<string, Column<Row>>;
}
