import { type LedgerRow, ledgerTimeMs } from '../ledger-row.ts';

/** The key of an item of the table `daily`. */
export interface DailyKey {
  /** `account#<account>` or `channel#<channel id>`. */
  id: string;
  /** `day#2026-11-22#<model>` or `hour#2026-11-22T09#<model>`, in UTC. */
  period: string;
}

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
  if (row.kind === 'grant') return [{ id: accountId(row.account), period: dayPeriod(day, grantsModel) }];
  if (row.kind === 'cancelled') return [];
  const keys = (id: string, model: string): DailyKey[] => [
    { id, period: dayPeriod(day, model) },
    { id, period: `hour#${hour}#${model}` },
  ];
  const { channel, upstream_model = row.model } = row;
  return [
    ...keys(accountId(row.account), row.model),
    ...(channel === undefined ? [] : keys(channelId(channel), upstream_model)),
  ];
}

export const accountId = (account: string): string => `account#${account}`;
export const channelId = (channel: string): string => `channel#${channel}`;
export const dayPeriod = (day: string, model: string): string => `day#${day}#${model}`;

/** The UTC day of a day's item; undefined: the item is an hour's. */
export const dayOf = ({ period }: DailyKey): string | undefined =>
  period.startsWith('day#') ? period.slice(4, 14) : undefined;

const hoursKeptMs = 3 * 24 * 60 * 60 * 1000;

/** When an hour's item may go, in Unix seconds; undefined: the item is a day's, and stays. */
export function expiryOf({ period }: DailyKey): number | undefined {
  if (!period.startsWith('hour#')) return undefined;
  return Math.floor((Date.parse(`${period.slice(5, 18)}:00:00Z`) + hoursKeptMs) / 1000);
}
