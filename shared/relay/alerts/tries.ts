/** When a notice is tried again, and when it is given up. Pure. */

/** Seconds from the begin of one try to the next. The first is above the 10 s that a try may take. */
const delaysSeconds = [30, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800];

export const triesMax = delaysSeconds.length + 1;

/** How long after the begin of try number `tries` (from 1) nobody tries again, in milliseconds. */
export const delayMs = (tries: number): number =>
  (delaysSeconds[Math.min(tries, delaysSeconds.length) - 1] ?? 0) * 1000;
