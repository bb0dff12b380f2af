import type { CloseRow } from '../ledger-row.ts';
import type { DailyKey } from './daily-key.ts';
import { sumsBy, type DailySum } from './daily-sums.ts';
import { minutePeriod, minutesId } from './sum-keys.ts';

/** Rows of one batch closed within seconds; only after an outage they are of many minutes. */
const minutesMax = 10;

/**
 * What rows add to the items of minutes, the newest first. By the time of the close, so that a batch is of few
 * minutes, and a failure is seen when it happened.
 */
export const minuteSums = (rows: readonly CloseRow[]): DailySum[] =>
  sumsBy(rows, minuteKeys)
    .toSorted((a, b) => (a.key.period < b.key.period ? 1 : -1))
    .slice(0, minutesMax);

const minuteKeys = ({ kind, at }: CloseRow): DailyKey[] =>
  kind === 'cancelled' ? [] : [{ id: minutesId(at.slice(0, 10)), period: minutePeriod(at) }];
