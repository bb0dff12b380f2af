/**
 * The keys of the table `daily`. What many accounts add to is spread over buckets, because DynamoDB writes 1,000 units a second
 * under one partition key, and cancels one of two transactions that meet on an item (docs/decisions/0072-sums-that-scale.md):
 *
 * - Sums of all accounts (of channels, of what was served) have bucket 0 alone until transactions meet; then a writer adds to
 *   any of them, and says so beforehand: `spread` names the buckets of each day. Readers add up those that it names.
 * - A month's sums are of one account each, whose name says the bucket: one of eight, since each list of a month reads them all.
 */
import { hash53 } from '../wire/ids.ts';
import { type LedgerRow, findLedgerTimeMs } from './ledger-row.ts';

export const bucketCount = 32;
const buckets = Array.from({ length: bucketCount }, (_, bucket) => bucket);

/** Stands for a model in items that sum grants; no model has such a name. */
export const grantsModel = '(grants)';

/**
 * The items that count a row. Its day is the one on which the call began, as in `ledger total`: rows are sorted
 * by that time, so a day can be recomputed by reading one range of them. A tombstone's row counts nowhere: its
 * call, if there is one, has a row of its own.
 * @param bucket of the sums of all accounts
 */
export function listDailyKeys(row: LedgerRow, bucket = 0): DailyKey[] {
  const began = new Date(findLedgerTimeMs(row)).toISOString();
  const [day, hour] = [began.slice(0, 10), began.slice(0, 13)];
  const id = formatAccountId(row.account);
  const month = buildMonthKey(began.slice(0, 7), row.account);
  if (row.kind === 'grant') return [{ id, period: dayPeriod(day, grantsModel) }, month];
  if (row.kind === 'cancelled') return [];
  const { channel, model, upstream_model = model } = row;
  return [
    { id, period: dayPeriod(day, model) },
    { id, period: `hour#${hour}#${model}` },
    ...(channel === undefined
      ? []
      : [{ id: inBucket(formatChannelId(channel), bucket), period: dayPeriod(day, upstream_model) }]),
    { ...buildServedKey(day, model, channel), id: inBucket(servedId, bucket) },
    month,
  ];
}

export const formatAccountId = (account: string): string => `account#${account}`;
export const formatChannelId = (channel: string): string => `channel#${channel}`;
/** The id of a sum's first bucket is the plain one; a number stands where no name of a channel can: `channel.3#openai`. */
const inBucket = (id: string, bucket: number): string =>
  bucket === 0 ? id : id.replace(/#|$/, `.${bucket}$&`);

/** Of a sum of all accounts: whichever transaction adds to it may add to another bucket instead. */
export const isOfAllAccounts = (id: string): boolean => /^(?:channel(?:\.\d+)?#|served(?:\.\d+)?$)/.test(id);

/**
 * The ids under which the items of a sum are; one, but for sums of all accounts.
 * @param used of these buckets beside the first
 */
export const listBucketIds = (id: string, used: readonly number[] = buckets): string[] =>
  isOfAllAccounts(id) ? [...new Set([0, ...used])].map((bucket) => inBucket(id, bucket)) : [id];

/** The items that name the buckets of each day. */
export const spreadId = 'spread';

export const buildSpreadKey = (day: string, bucket: number): DailyKey => ({
  id: spreadId,
  period: dayPeriod(day, String(bucket)),
});

/** Undefined: it is none of them. */
export function parseSpreadBucket({ period }: DailyKey): number | undefined {
  const bucket = Number(period.split('#')[2]);
  return buckets.includes(bucket) ? bucket : undefined;
}

/** The key of the sum that an item is a bucket of. */
export const removeBucket = ({ id, period }: DailyKey): DailyKey => ({
  id: isOfAllAccounts(id) ? id.replace(/^([a-z]+)\.\d+/, '$1') : id,
  period,
});

const dayPeriod = (day: string, model: string): string => `day#${day}#${model}`;

/** The UTC day of a day's item; undefined: the item is of another period. */
export const dayOf = ({ period }: DailyKey): string | undefined =>
  period.startsWith('day#') ? period.slice(4, 14) : undefined;

const secondsOfDay = 24 * 60 * 60;

/** When an item of an hour or a minute may go, in Unix seconds; undefined: the item stays. */
export function expiryOf({ period }: DailyKey): number | undefined {
  if (period.startsWith('hour#'))
    return Date.parse(`${period.slice(5, 18)}:00:00Z`) / 1000 + 3 * secondsOfDay;
  const minute = parseMinutePeriod(period);
  return minute === undefined ? undefined : minute / 1000 + 2 * secondsOfDay;
}

/** All items by day, model and channel: one partition, sorted by day. */
export const servedId = 'served';

const monthBuckets = 8;
const accountPrefix = 'account#';
const monthForm = /^month\.\d+#/;

const monthId = (month: string, bucket: number): string => `month.${bucket}#${month}`;
/** The ids under which the accounts of a month are. */
export const listMonthIds = (month: string): string[] =>
  Array.from({ length: monthBuckets }, (_, bucket) => monthId(month, bucket));

export const buildMonthKey = (month: string, account: string): DailyKey => ({
  id: monthId(month, hash53(account) % monthBuckets),
  period: accountPrefix + account,
});

/** The first that any relay can have. */
const firstYear = 2025;

/** All months of the years until now. */
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

/** A sort key has at most 1,024 bytes. */
const channelCharactersMax = 200;

/** @param channel undefined: no channel was tried; no id is empty */
export const buildServedKey = (day: string, model: string, channel = ''): DailyKey => ({
  id: servedId,
  period: `day#${day}#${model}#${channel.slice(0, channelCharactersMax)}`,
});

/** Names of models have no `#`, ids of channels may. */
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

/** Start of the minute in epoch milliseconds; undefined: the period is another. */
export const parseMinutePeriod = (period: string): number | undefined =>
  period.startsWith('minute#') ? Date.parse(`${period.slice(7)}:00Z`) : undefined;

/** The key of an item of the table `daily`. */
export interface DailyKey {
  /** `account#<account>`, `channel#<channel id>`, `month.7#2026-11`, `served` or `minutes#2026-11-21`; `served.3`: a bucket; `spread`. */
  id: string;
  /**
   * `day#2026-11-22#<model>` or `hour#2026-11-22T09#<model>`; of a month `account#<account>`; of what was served
   * `day#2026-11-22#<model>#<channel id>`; of minutes `minute#2026-11-22T09:41`. All in UTC.
   */
  period: string;
}
