/**
 * The keys of the table `daily`. Items to which many accounts add are spread over buckets, because DynamoDB writes 1,000 units a
 * second under one partition key, and cancels one of two transactions that meet on an item (docs/decisions/0072-sums-that-scale.md):
 *
 * - Sums of all accounts (`channel`, `served`, `health`) use bucket 0 until transactions meet. Then a writer first names another bucket of
 *   the day under `spread`, and adds to it. Readers add up the buckets that are named there.
 * - Sums of months belong to one account each. Its hash picks one of eight buckets: a list of a month reads them all.
 */
import { hash53, shortenChannelId } from '../wire/ids.ts';
import { utcDay } from '../wire/iso-time.ts';
import { type LedgerRow, findLedgerTimeMs } from './ledger-row.ts';

export const bucketCount = 32;
const buckets = Array.from({ length: bucketCount }, (_, bucket) => bucket);

/** Takes the model's place in keys of sums of grants. No model has such a name. */
export const grantsModel = '(grants)';

/**
 * Lists the items that count a row. Its day is the one on which the call began: rows are sorted by that time, so an audit
 * recomputes a day from one range of them. The row of a tombstone counts nowhere: its call, if there is one, has another row.
 * @param bucket of the sums of all accounts
 */
export function listDailyKeys(row: LedgerRow, bucket = 0): DailyKey[] {
  const began = new Date(findLedgerTimeMs(row)).toISOString();
  const [day, hour] = [began.slice(0, 10), began.slice(0, 13)];
  const id = formatAccountId(row.account);
  const month = buildMonthKey(began.slice(0, 7), row.account);
  if (row.kind === 'grant') return [{ id, period: formatDayPeriod(day, grantsModel) }, month];
  if (row.kind === 'cancelled') return [];
  const { channel, model, upstream_model = model } = row;
  return [
    { id, period: formatDayPeriod(day, model) },
    { id, period: `hour#${hour}#${model}` },
    ...(channel === undefined
      ? []
      : [{ id: addBucket(formatChannelId(channel), bucket), period: formatDayPeriod(day, upstream_model) }]),
    { ...buildServedKey(day, model, channel), id: addBucket(servedId, bucket) },
    month,
  ];
}

/**
 * Lists the items that count an attempt: that of the day of the call, and that of the hour in which the call ended, so that a failure
 * appears when it happened.
 */
export const listAttemptKeys = (
  row: Pick<LedgerRow, 'id' | 'at'>,
  { channel, model, secret }: { channel: string; model: string; secret: string },
  bucket = 0,
): [day: DailyKey, hour: DailyKey] => {
  const day = buildServedKey(utcDay(findLedgerTimeMs(row)), model, channel);
  const hour = `hour#${row.at.slice(0, 13)}#${model}#${secret}`;
  return [
    { ...day, id: addBucket(day.id, bucket) },
    { id: addBucket(formatHealthId(channel), bucket), period: hour },
  ];
};

/** Neither hashes of secrets nor model names contain `#`. */
export function parseHourKey({ period }: DailyKey): { hour: string; model: string; secret: string } {
  const [, hour = '', model = '', secret = ''] = period.split('#');
  return { hour, model, secret };
}

export const formatHealthId = (channel: string): string => `health#${shortenChannelId(channel)}`;
export const isHealthKey = ({ id }: DailyKey): boolean => /^health[.#]/.test(id);

export const formatAccountId = (account: string): string => `account#${account}`;
export const formatChannelId = (channel: string): string => `channel#${channel}`;
/** `channel.3#openai`: the number comes where no channel's name can be. Bucket 0 adds none. */
const addBucket = (id: string, bucket: number): string =>
  bucket === 0 ? id : id.replace(/#|$/, `.${bucket}$&`);

export const isOfAllAccounts = (id: string): boolean =>
  /^(?:(?:channel|health)(?:\.\d+)?#|served(?:\.\d+)?$)/.test(id);

/** @param used the buckets beside the first */
export const listBucketIds = (id: string, used: readonly number[] = buckets): string[] =>
  isOfAllAccounts(id) ? [...new Set([0, ...used])].map((bucket) => addBucket(id, bucket)) : [id];

export const spreadId = 'spread';

export const buildSpreadKey = (day: string, bucket: number): DailyKey => ({
  id: spreadId,
  period: formatDayPeriod(day, String(bucket)),
});

export function parseSpreadBucket({ period }: DailyKey): number | undefined {
  const bucket = Number(period.split('#')[2]);
  return buckets.includes(bucket) ? bucket : undefined;
}

export const removeBucket = ({ id, period }: DailyKey): DailyKey => ({
  id: isOfAllAccounts(id) ? id.replace(/^([a-z]+)\.\d+/, '$1') : id,
  period,
});

const formatDayPeriod = (day: string, model: string): string => `day#${day}#${model}`;

export const dayOf = ({ period }: DailyKey): string | undefined =>
  period.startsWith('day#') ? period.slice(4, 14) : undefined;

/** Returns the model of a sum by account, day and model. */
export const modelOf = ({ key }: { key: DailyKey }): string => key.period.split('#')[2] ?? '';

/** Returns the day of a daily or hourly item. */
export const spreadDayOf = ({ period }: DailyKey): string | undefined =>
  /^(?:day|hour)#/.test(period) ? period.slice(period.indexOf('#') + 1).slice(0, 10) : undefined;

const secondsOfDay = 24 * 60 * 60;
/** Marks compare with the same hours of the last seven days. */
const healthDays = 9;

/** Items of hours and minutes expire, in Unix seconds; others stay. */
export function expiryOf(key: DailyKey): number | undefined {
  const { period } = key;
  if (period.startsWith('hour#')) {
    const days = isHealthKey(key) ? healthDays : 3;
    return Date.parse(`${period.slice(5, 18)}:00:00Z`) / 1000 + days * secondsOfDay;
  }
  const minute = parseMinutePeriod(period);
  return minute === undefined ? undefined : minute / 1000 + 2 * secondsOfDay;
}

/** The id of sums by day, model and channel. */
export const servedId = 'served';

const monthBuckets = 8;
const accountPrefix = 'account#';
const monthForm = /^month\.\d+#/;

const formatMonthId = (month: string, bucket: number): string => `month.${bucket}#${month}`;
export const listMonthIds = (month: string): string[] =>
  Array.from({ length: monthBuckets }, (_, bucket) => formatMonthId(month, bucket));

export const buildMonthKey = (month: string, account: string): DailyKey => ({
  id: formatMonthId(month, hash53(account) % monthBuckets),
  period: accountPrefix + account,
});

/** No relay is older. */
const firstYear = 2025;

export function listMonthsUntil(nowMs: number): string[] {
  const years = new Date(nowMs).getUTCFullYear() - firstYear + 1;
  return Array.from(
    { length: years * 12 },
    (_, at) => `${firstYear + Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')}`,
  );
}

export const isMonthKey = ({ id }: DailyKey): boolean => monthForm.test(id);

export const parseMonthKey = ({ id, period }: DailyKey): { month: string; account: string } => ({
  month: id.replace(monthForm, ''),
  account: period.slice(accountPrefix.length),
});

export const buildServedKey = (day: string, model: string, channel = ''): DailyKey => ({
  id: servedId,
  period: `day#${day}#${model}#${shortenChannelId(channel)}`,
});

/** Only ids of channels may contain `#`. */
export function parseServedKey({ period }: DailyKey): {
  day: string;
  model: string;
  channel: string | undefined;
} {
  const [, day = '', model = '', ...channel] = period.split('#');
  return { day, model, channel: channel.join('#') || undefined };
}

export const formatMinutesId = (day: string): string => `minutes#${day}`;
export const formatMinutePeriod = (iso: string): string => `minute#${iso.slice(0, 16)}`;

/** Returns the start of the minute in epoch milliseconds. */
export const parseMinutePeriod = (period: string): number | undefined =>
  period.startsWith('minute#') ? Date.parse(`${period.slice(7)}:00Z`) : undefined;

/** The key of an item of the table `daily`. */
export interface DailyKey {
  /**
   * `account#<account>`, `channel#<channel id>`, `health#<channel id>`, `month.7#2026-11`, `served`, `served.3` (a bucket),
   * `minutes#2026-11-21` or `spread`.
   */
  id: string;
  /**
   * `day#2026-11-22#<model>` or `hour#2026-11-22T09#<model>`; for `health` `hour#2026-11-22T09#<model>#<secret>`; for `month` `account#<account>`; for `served`
   * `day#2026-11-22#<model>#<channel id>`; for `minutes` `minute#2026-11-22T09:41`. All in UTC.
   */
  period: string;
}
