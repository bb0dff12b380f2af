import { type LedgerRow, ledgerTimeMs } from './ledger-row.ts';

/** Stands for a model in items that sum grants; no model has such a name. */
export const grantsModel = '(grants)';

/**
 * The items that count a row. Its day is the one on which the call began, as in `ledger total`: rows are sorted
 * by that time, so a day can be recomputed by reading one range of them. A tombstone's row counts nowhere: its
 * call, if there is one, has a row of its own.
 */
export function dailyKeys(row: LedgerRow): DailyKey[] {
  const began = new Date(ledgerTimeMs(row)).toISOString();
  const [day, hour] = [began.slice(0, 10), began.slice(0, 13)];
  const id = accountId(row.account);
  const month = monthKey(began.slice(0, 7), row.account);
  if (row.kind === 'grant') return [{ id, period: dayPeriod(day, grantsModel) }, month];
  if (row.kind === 'cancelled') return [];
  const { channel, model, upstream_model = model } = row;
  return [
    { id, period: dayPeriod(day, model) },
    { id, period: `hour#${hour}#${model}` },
    ...(channel === undefined ? [] : [{ id: channelId(channel), period: dayPeriod(day, upstream_model) }]),
    servedKey(day, model, channel),
    month,
  ];
}

export const accountId = (account: string): string => `account#${account}`;
export const channelId = (channel: string): string => `channel#${channel}`;
const dayPeriod = (day: string, model: string): string => `day#${day}#${model}`;

/** The UTC day of a day's item; undefined: the item is of another period. */
export const dayOf = ({ period }: DailyKey): string | undefined =>
  period.startsWith('day#') ? period.slice(4, 14) : undefined;

const secondsOfDay = 24 * 60 * 60;

/** When an item of an hour or a minute may go, in Unix seconds; undefined: the item stays. */
export function expiryOf({ period }: DailyKey): number | undefined {
  if (period.startsWith('hour#'))
    return Date.parse(`${period.slice(5, 18)}:00:00Z`) / 1000 + 3 * secondsOfDay;
  const minute = minuteOf(period);
  return minute === undefined ? undefined : minute / 1000 + 2 * secondsOfDay;
}

/** All items by day, model and channel: one partition, sorted by day. */
export const servedId = 'served';

const monthPrefix = 'month#';
const accountPrefix = 'account#';

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

/** The key of an item of the table `daily`. */
export interface DailyKey {
  /** `account#<account>`, `channel#<channel id>`, `month#2026-11`, `served` or `minutes#2026-11-21`. */
  id: string;
  /**
   * `day#2026-11-22#<model>` or `hour#2026-11-22T09#<model>`; of a month `account#<account>`; of what was served
   * `day#2026-11-22#<model>#<channel id>`; of minutes `minute#2026-11-22T09:41`. All in UTC.
   */
  period: string;
}
