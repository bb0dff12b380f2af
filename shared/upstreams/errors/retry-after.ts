/** Reads how long an upstream wants to be left alone. */

/** A time that no client or counter overflows on. */
const secondsMax = 366 * 86_400;

/**
 * The seconds of a Retry-After header, which holds seconds or an HTTP date. Undefined: the header holds neither.
 * @param nowMs milliseconds since the epoch; undefined: dates are not read
 */
export function retryAfterSeconds(header: string | undefined, nowMs: number | undefined): number | undefined {
  const text = header?.trim() ?? '';
  if (text === '') return undefined;
  const seconds = Number(text);
  if (!Number.isNaN(seconds)) return bounded(seconds);
  const dateMs = Date.parse(text);
  return nowMs === undefined || Number.isNaN(dateMs) ? undefined : bounded((dateMs - nowMs) / 1000);
}

/** A date that is over means now; a negative number means nothing, as a date never gives one. */
const bounded = (seconds: number): number => Math.min(Math.max(seconds, 0), secondsMax);
