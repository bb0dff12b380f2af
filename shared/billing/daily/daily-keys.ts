import { type LedgerRow, ledgerTimeMs } from '../ledger-row.ts';
import type { DailyKey } from './daily-key.ts';
import { minuteOf, monthKey, servedKey } from './sum-keys.ts';

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
export const dayPeriod = (day: string, model: string): string => `day#${day}#${model}`;

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
