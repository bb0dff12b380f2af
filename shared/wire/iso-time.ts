/** A day of UTC, which has no summer time. */
export const dayMs = 86_400_000;
export const hourMs = 3_600_000;

/** ISO 8601 without milliseconds: the form of times in rows. */
export const isoTime = (timeMs: number): string => new Date(timeMs).toISOString().replace(/\.\d+Z$/, 'Z');

/** `2026-11-22` of milliseconds since 1970. */
export const utcDay = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Formats milliseconds since 1970 as `2026-11-22T09`. */
export const utcHour = (ms: number): string => new Date(ms).toISOString().slice(0, 13);

/** `2026-11` of milliseconds since 1970. */
export const utcMonth = (ms: number): string => new Date(ms).toISOString().slice(0, 7);
