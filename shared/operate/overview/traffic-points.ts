/** Minutes of `daily` as the points of plots: fewer, wider ones for a longer time, and none left out. */
import { addFigures, noFigures, type DailyFigures } from '../../billing/daily/daily-figures.ts';
import type { Minute } from '../sum-reader.ts';

export interface TrafficPoint {
  startMs: number;
  figures: DailyFigures;
}

export interface TimeSpan {
  fromMs: number;
  /** Exclusive. */
  toMs: number;
  stepMs: number;
}

const minuteMs = 60_000;

/** About 100 points, on whole minutes of the clock. The last one is not over yet. */
export function spanUntil(nowMs: number, hours: number): TimeSpan {
  const stepMs = hours <= 2 ? minuteMs : hours <= 8 ? 5 * minuteMs : 15 * minuteMs;
  const toMs = Math.floor(nowMs / stepMs) * stepMs + stepMs;
  return { fromMs: toMs - hours * 60 * minuteMs, toMs, stepMs };
}

export function trafficPoints(
  minutes: readonly Minute[],
  { fromMs, toMs, stepMs }: TimeSpan,
): TrafficPoint[] {
  const sums = new Map<number, DailyFigures>();
  for (const { startMs, figures } of minutes) {
    const at = fromMs + Math.floor((startMs - fromMs) / stepMs) * stepMs;
    sums.set(at, addFigures(sums.get(at) ?? noFigures, figures));
  }
  const count = Math.max(0, Math.round((toMs - fromMs) / stepMs));
  return Array.from({ length: count }, (_, index) => {
    const startMs = fromMs + index * stepMs;
    return { startMs, figures: sums.get(startMs) ?? noFigures };
  });
}
