import { amountNames, countNames, type DailyFigures } from './daily-figures.ts';
import type { DailyKey } from './daily-key.ts';
import { firstContentBuckets } from './first-content.ts';
import { isMonth, servedId } from './sum-keys.ts';

type CountName = (typeof countNames)[number];
type AmountName = (typeof amountNames)[number];
interface Kept {
  counts: ReadonlySet<CountName>;
  amounts: ReadonlySet<AmountName>;
}

const all: Kept = { counts: new Set(countNames), amounts: new Set(amountNames) };
const withoutUnpaid: Kept = {
  counts: new Set(countNames.filter((name) => !name.startsWith('unpaid_'))),
  amounts: all.amounts,
};
const volume = ['calls', 'failures', 'prompt_tokens', 'completion_tokens'] as const;

/** A page lists the items of 5,000 accounts at once, so they are small. */
const ofMonth: Kept = {
  counts: new Set([...volume, 'plan_calls', 'grants']),
  amounts: new Set(['charged', 'granted']),
};
const ofMinute: Kept = {
  counts: new Set([...volume, ...firstContentBuckets]),
  amounts: new Set(['charged', 'bought', 'bought_charged']),
};

const keptIn = (key: DailyKey): Kept => {
  if (isMonth(key)) return ofMonth;
  if (key.period.startsWith('minute#')) return ofMinute;
  return key.id === servedId ? all : withoutUnpaid;
};

/** Those of the figures that an item with this key has. */
export function figuresIn(key: DailyKey, { counts, amounts }: DailyFigures): DailyFigures {
  const kept = keptIn(key);
  const figures: DailyFigures = { counts: {}, amounts: {} };
  for (const name of kept.counts) if (counts[name] !== undefined) figures.counts[name] = counts[name];
  for (const name of kept.amounts) if (amounts[name] !== undefined) figures.amounts[name] = amounts[name];
  return figures;
}
