import type { Settings } from './settings.ts';

/** The notices that are shown at a time, as clients get them: with Unix seconds. */
export const shownNotices = ({ notices = [] }: Settings, nowMs: number) =>
  notices
    .filter(({ fromMs = -Infinity, untilMs = Infinity }) => fromMs <= nowMs && nowMs < untilMs)
    .map(({ text, fromMs, untilMs, models }) => ({
      text,
      from: secondsOf(fromMs),
      until: secondsOf(untilMs),
      models: models ?? null,
    }));

const secondsOf = (timeMs: number | undefined): number | null =>
  timeMs === undefined ? null : Math.floor(timeMs / 1000);
