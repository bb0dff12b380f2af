import type { DailyKey } from './daily-key.ts';

/** All items by day, model and channel: one partition, sorted by day. */
export const servedId = 'served';

const monthPrefix = 'month#';
const accountPrefix = 'account#';

/** @param month such as `2026-11` */
export const monthId = (month: string): string => monthPrefix + month;

export const monthKey = (month: string, account: string): DailyKey => ({
  id: monthId(month),
  period: accountPrefix + account,
});

export const isMonth = ({ id }: DailyKey): boolean => id.startsWith(monthPrefix);

export const monthOf = ({ id, period }: DailyKey): { month: string; account: string } => ({
  month: id.slice(monthPrefix.length),
  account: period.slice(accountPrefix.length),
});

/** A sort key has at most 1,024 bytes. */
const channelCharactersMax = 200;

/** @param channel undefined: no channel was tried; no id is empty */
export const servedKey = (day: string, model: string, channel = ''): DailyKey => ({
  id: servedId,
  period: `day#${day}#${model}#${channel.slice(0, channelCharactersMax)}`,
});

/** Names of models have no `#`, ids of channels may. */
export function servedOf({ period }: DailyKey): { day: string; model: string; channel: string | undefined } {
  const [, day = '', model = '', ...channel] = period.split('#');
  return { day, model, channel: channel.join('#') || undefined };
}

export const minutesId = (day: string): string => `minutes#${day}`;
export const minutePeriod = (iso: string): string => `minute#${iso.slice(0, 16)}`;

/** Start of the minute in epoch milliseconds; undefined: the period is another. */
export const minuteOf = (period: string): number | undefined =>
  period.startsWith('minute#') ? Date.parse(`${period.slice(7)}:00Z`) : undefined;
