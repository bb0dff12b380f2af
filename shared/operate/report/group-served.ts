/** Adds up what was served, by whatever names a group. */
import { addFigures, noFigures, type DailyFigures } from '../../billing/daily/daily-figures.ts';
import type { ServedDay } from '../sum-reader.ts';

export interface ServedGroup {
  name: string;
  figures: DailyFigures;
}

export const sumOf = (served: readonly ServedDay[]): DailyFigures =>
  served.reduce((sum, { figures }) => addFigures(sum, figures), noFigures);

/** A group without a name is left out. */
export const groupServed = (
  served: readonly ServedDay[],
  nameOf: (each: ServedDay) => string | undefined,
): ServedGroup[] =>
  [...Map.groupBy(served, nameOf)].flatMap(([name, each]) =>
    name === undefined ? [] : [{ name, figures: sumOf(each) }],
  );
