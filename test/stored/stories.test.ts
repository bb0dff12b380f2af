import { expect, it } from 'vitest';
import { storiesOfSeeds } from './virtual-stage.ts';

/** To repeat one story: `STORED_SEED=230 npm test -- test/stored/stories.test.ts`. */
const onlySeed = process.env['STORED_SEED'];
const [first, count] =
  onlySeed === undefined ? [1, 75] : [Number(onlySeed), Number(process.env['STORED_SEEDS'] ?? 1)];

it('stored and keyed answers are complete, charged once and invisible to other accounts, whatever fails', async () => {
  const stories = await storiesOfSeeds(first, count);
  if (onlySeed !== undefined) return;
  const countOf = (what: (story: (typeof stories)[number]) => boolean): number => stories.filter(what).length;
  expect(countOf(({ fell }) => fell > 0)).toBeGreaterThan(count / 8);
  expect(countOf(({ faults }) => faults > 0)).toBeGreaterThan(count / 8);
  expect(countOf(({ cuts }) => cuts > 0)).toBeGreaterThan(count / 8);
  expect(new Set(stories.map(({ kind }) => kind)).size).toBe(6);
}, 600_000);
