/** Reads the sums of months, of what was served, and of minutes for operators. */
import { marshall } from '@aws-sdk/util-dynamodb';
import {
  minuteOf,
  minutePeriod,
  minutesId,
  monthId,
  monthKey,
  monthOf,
  servedId,
  servedOf,
} from '../../../billing/daily/sum-keys.ts';
import type { Reading } from '../../../operate/sum-reader.ts';
import type { AccountMonth, Minute, ServedDay, SumReader } from '../../../operate/sum-reader.ts';
import type { Attributes } from '../attributes.ts';
import { dailySumOf } from '../daily-attributes.ts';
import type { Store } from '../operator-client.ts';
import { afterAll, dailyItems } from './dynamo-daily-reader.ts';
import { itemsOf, reading } from './table-pages.ts';

const dayMs = 24 * 60 * 60 * 1000;
const keptMs = 3 * dayMs;
/** DynamoDB refuses a request that names a longer one, whatever else it asks for. */
const sortKeyBytesMax = 1024;

export const dynamoSumReader = (store: Store): SumReader => ({
  async *monthAccounts(month) {
    for await (const page of dailyItems(store, monthId(month), ['account#', `account#${afterAll}`]))
      yield page.map((item) => readingOf(item, accountMonthOf));
  },
  async accountMonths(wanted) {
    const keys = new Map(
      wanted.map(({ month, account }) => [`${month} ${account}`, monthKey(month, account)]),
    );
    const possible = [...keys.values()].filter(({ period }) => Buffer.byteLength(period) <= sortKeyBytesMax);
    const items = await itemsOf(
      store,
      'daily',
      possible.map((key) => marshall({ ...key })),
    );
    return items.map((item) => readingOf(item, accountMonthOf));
  },
  async *served({ from, to }) {
    for await (const page of dailyItems(store, servedId, [`day#${from}`, `day#${to}${afterAll}`]))
      yield page.map((item) => readingOf(item, servedDayOf));
  },
  async *minutes(fromMs, toMs) {
    const lastMs = toMs - 1;
    // Older ones are removed; a wrong range must not read a partition for each day since 1970.
    const firstMs = Math.max(fromMs, toMs - keptMs);
    const range = [minutePeriod(iso(firstMs)), minutePeriod(iso(lastMs))] as const;
    for (let atMs = firstMs - (firstMs % dayMs); atMs <= lastMs; atMs += dayMs)
      for await (const page of dailyItems(store, minutesId(iso(atMs).slice(0, 10)), range))
        yield page.map((item) => readingOf(item, minuteItemOf));
  },
});

const iso = (ms: number): string => new Date(ms).toISOString();

const readingOf = <Row>(item: Attributes, read: (item: Attributes) => Row): Reading<Row> =>
  reading(item, `daily ${item['id']?.S} ${item['period']?.S}`, read);

function accountMonthOf(item: Attributes): AccountMonth {
  const { key, figures } = dailySumOf(item);
  return { ...monthOf(key), figures };
}

function servedDayOf(item: Attributes): ServedDay {
  const { key, figures } = dailySumOf(item);
  return { ...servedOf(key), figures };
}

function minuteItemOf(item: Attributes): Minute {
  const { key, figures } = dailySumOf(item);
  return { startMs: minuteOf(key.period) ?? 0, figures };
}
