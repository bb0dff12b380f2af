/** ISO 8601 without milliseconds: the form of times in rows. */
export const isoTime = (timeMs: number): string => new Date(timeMs).toISOString().replace(/\.\d+Z$/, 'Z');
