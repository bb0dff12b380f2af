/** Without milliseconds, as rows are written. */
export const isoTime = (timeMs: number): string => new Date(timeMs).toISOString().replace(/\.\d+Z$/, 'Z');
