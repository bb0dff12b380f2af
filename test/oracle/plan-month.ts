/** Returns the first day of a plan's month, from the day and time on which the plan began, clamped at month ends. */
export function planMonth(since: string, atMs: number): string {
  const began = new Date(since);
  const startOf = (months: number): number => {
    const month = began.getUTCMonth() + months;
    const daysInMonth = new Date(Date.UTC(began.getUTCFullYear(), month + 1, 0)).getUTCDate();
    const day = Math.min(began.getUTCDate(), daysInMonth);
    const timeOfDay = began.getTime() % 86_400_000;
    return Date.UTC(began.getUTCFullYear(), month, day) + timeOfDay;
  };
  let months = 0;
  while (startOf(months + 1) <= atMs) months += 1;
  return new Date(startOf(months)).toISOString().slice(0, 10);
}

/** Returns the UTC day of a budget. */
export const budgetDay = (atMs: number): string => new Date(atMs).toISOString().slice(0, 10);
