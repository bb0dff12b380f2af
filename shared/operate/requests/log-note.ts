/** View: why the log has no line of a request. */

/** Around the time in the id: a call lasts 15 minutes at most, and clocks differ a little. */
export const aroundMs = 15 * 60_000;
const dayMs = 24 * 60 * 60_000;

/** What is deleted and what never was look the same, so both are said. */
export function missingLines(timeMs: number, nowMs: number): string {
  const days = Math.floor((nowMs - timeMs) / dayMs);
  const when = `the log has no line of it within 15 minutes of ${new Date(timeMs).toISOString()}`;
  if (timeMs > nowMs + aroundMs) return `${when}, which is still to come: is the id right?`;
  return days >= 1
    ? `${when}, ${days} days ago: lines are kept for a month unless the stack's option logRetention says otherwise, and ` +
        'locally until 32 MB of newer ones came'
    : `${when}: it may still run, or take some seconds to be found`;
}
