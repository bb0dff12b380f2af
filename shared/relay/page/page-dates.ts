/** Dates as people read them, in the calendar of the relay. */

/** A day alone where it begins with that moment. */
export function dateWords(timeMs: number, timeZone: string): string {
  const at = new Date(timeMs);
  const day = at.toLocaleDateString('en-GB', { timeZone, day: 'numeric', month: 'long', year: 'numeric' });
  const clock = at.toLocaleTimeString('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' });
  return clock === '00:00' ? day : `${day}, ${clock} ${timeZone}`;
}
