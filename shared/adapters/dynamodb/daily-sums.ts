/** Reads, adds and corrects sums in `daily`. Amounts are exact yuan. */
import type { AttributeValue, TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { formatYuan, parseYuan, type NanoYuan } from '../../billing/money.ts';
import {
  amountNames,
  countNames,
  noFigures,
  sumDaily,
  sumFigures,
  type DailySum,
} from '../../billing/daily-figures.ts';
import type { DailyDifference } from '../../billing/audit/daily-audit.ts';
import {
  expiryOf,
  parseMinutePeriod,
  formatMinutePeriod,
  listBucketIds,
  isOfAllAccounts,
  formatHealthId,
  formatMinutesId,
  listMonthIds,
  buildMonthKey,
  parseHourKey,
  parseMonthKey,
  servedId,
  parseServedKey,
  parseSpreadBucket,
  spreadId,
} from '../../billing/daily-keys.ts';
import type { LedgerRow } from '../../billing/ledger-row.ts';
import { physicalNameOf } from '../../tables/table-names.ts';
import { attributesOf, Table, type Attributes } from './table-client.ts';
import { writeTransaction } from './transactions.ts';
import type {
  AccountMonth,
  DayRange,
  LedgerReader,
  Reading,
  ServedDay,
  SumReader,
} from '../../operate/operator-ports.ts';
import { compareCodeUnits } from '../../wire/json.ts';
import { type Store, tryReading } from './operator-store.ts';
import { dayMs } from '../../wire/iso-time.ts';

/** Must run in the transaction that puts these ledger rows. */
export const countInDaily = (stack: string, rows: readonly LedgerRow[]): TransactWriteItem[] =>
  sumDaily(rows).map((sum) => ({ Update: addToDaily(stack, sum) }));

/** Corrects the first bucket if all buckets still have the figures that were found. */
const buildCorrection = (
  stack: string,
  { key, items, missing, firstDay }: DailyDifference,
): TransactWriteItem[] =>
  listBucketIds(key.id).map((id) => {
    const { ConditionExpression, values } = buildFoundCondition(
      items.find((item) => item.key.id === id)?.figures,
    );
    const { TableName, Key, ...update } = addToDaily(stack, {
      key: { ...key, id },
      figures: missing,
      firstDay,
    });
    if (id !== key.id)
      return { ConditionCheck: { TableName, Key, ConditionExpression, ExpressionAttributeValues: values } };
    const ExpressionAttributeValues = { ...update.ExpressionAttributeValues, ...values };
    return { Update: { TableName, Key, ...update, ConditionExpression, ExpressionAttributeValues } };
  });

function buildFoundCondition({ counts: { calls = 0, grants = 0 }, amounts: { charged = 0n } } = noFigures) {
  const same = [
    equalsOrAbsent('calls', ':foundCalls', calls === 0),
    equalsOrAbsent('grants', ':foundGrants', grants === 0),
    equalsOrAbsent('charged', ':foundCharged', charged === 0n),
  ];
  const values = {
    ...attributesOf({ ':foundCalls': calls, ':foundGrants': grants }),
    ':foundCharged': { N: formatYuan(charged) },
  };
  return { ConditionExpression: same.join(' AND '), values };
}

const equalsOrAbsent = (name: string, value: string, isZero: boolean): string =>
  isZero ? `(attribute_not_exists(${name}) OR ${name} = ${value})` : `${name} = ${value}`;

export function addToDaily(stack: string, { key, figures, firstDay }: DailySum) {
  const added: [string, AttributeValue][] = [];
  for (const [name, count = 0] of Object.entries(figures.counts))
    if (count !== 0) added.push([name, { N: String(count) }]);
  for (const name of amountNames) {
    const amount = figures.amounts[name] ?? 0n;
    if (amount !== 0n) added.push([name, { N: formatYuan(amount) }]);
  }
  const expires = expiryOf(key);
  const adds = added.map(([name]) => `${name} :${name}`).join(', ');
  const clauses = [
    ...(expires === undefined ? [] : ['SET #expires = :expires']),
    ...(firstDay === undefined ? [] : ['SET first_day = if_not_exists(first_day, :firstDay)']),
    ...(adds === '' ? [] : [`ADD ${adds}`]),
  ];
  return {
    TableName: physicalNameOf(stack, 'daily'),
    Key: attributesOf(key),
    UpdateExpression: clauses.join(' '),
    ...(expires !== undefined && { ExpressionAttributeNames: { '#expires': 'expires' } }),
    ExpressionAttributeValues: {
      ...attributesOf({ ':expires': expires, ':firstDay': firstDay }),
      ...Object.fromEntries(added.map(([name, count]) => [`:${name}`, count])),
    },
  };
}

export function dailySumOf(attributes: Attributes): DailySum {
  const counts: Record<string, number> = {};
  const amounts: Record<string, NanoYuan> = {};
  for (const [name, { N = '' }] of Object.entries(attributes)) {
    if (knownCounts.has(name)) {
      const count = N === '' ? NaN : Number(N);
      if (!Number.isSafeInteger(count)) throw createFormatError(name);
      if (count !== 0) counts[name] = count;
    } else if (knownAmounts.has(name)) {
      const amount = parseYuan(N);
      if (amount === undefined) throw createFormatError(name);
      if (amount !== 0n) amounts[name] = amount;
    }
  }
  return {
    key: { id: attributes['id']?.S ?? '', period: attributes['period']?.S ?? '' },
    figures: { counts, amounts },
    firstDay: attributes['first_day']?.S,
  };
}

// Reading only the attributes present is faster: overviews read 15,000 items, each with 20 of the 190 figures.
const knownCounts: ReadonlySet<string> = new Set(countNames);
const knownAmounts: ReadonlySet<string> = new Set(amountNames);

const createFormatError = (name: string): Error => new Error(`daily: ${name} is not what functions write`);

export function createDailyReader(store: Store): Pick<LedgerReader, 'daily' | 'addToDaily'> {
  const { tables, target } = store;
  return {
    async *daily(id, days = allDays) {
      for (const page of await readBuckets(store, await findUsedIds(store, id, days), buildDaysRange(days)))
        yield page.map((item) => readingOf(item, dailySumOf));
    },
    async addToDaily(difference) {
      const reply = await writeTransaction(tables, buildCorrection(target.stack, difference));
      if (reply.done || reply.conditions.length > 0) return reply.done;
      throw reply.error;
    },
  };
}

const allDays = { from: '', to: '9' };

const afterAll = '\u{10FFFF}';

const buildDaysRange = ({ from, to }: DayRange) => [`day#${from}`, `day#${to}${afterAll}`] as const;

async function findUsedIds(store: DailyStore, id: string, days: DayRange): Promise<string[]> {
  if (!isOfAllAccounts(id)) return [id];
  const pages = await Array.fromAsync(readDailyItems(store, spreadId, buildDaysRange(days)));
  const used = pages.flat().flatMap((item) => parseSpreadBucket(dailySumOf(item).key) ?? []);
  return listBucketIds(id, used);
}

type DailyRange = [range: readonly [string, string], attributes?: string[]];

const readBuckets = async (store: DailyStore, ids: readonly string[], ...of: DailyRange) =>
  (await Promise.all(ids.map((id) => Array.fromAsync(readDailyItems(store, id, ...of))))).flat();

const readSorted = async (...range: Parameters<typeof readBuckets>): Promise<Attributes[]> =>
  (await readBuckets(...range)).flat().toSorted(compareByPeriod);

type DailyStore = Pick<Store, 'tables'> & { target: { stack: string } };

function readDailyItems({ tables, target }: DailyStore, id: string, ...[[from, to], attributes]: DailyRange) {
  const values = { ':id': id, ':from': from, ':to': to };
  return new Table(tables, target.stack, 'daily').queryRange(isInPeriod, values, { attributes });
}

const isInPeriod = 'id = :id AND period BETWEEN :from AND :to';

const keptMs = 3 * dayMs;
/** DynamoDB refuses requests with longer keys. */
const sortKeyBytesMax = 1024;

/** Reads the sums of a channel's attempts by hour, model and secret. Includes the hours `from` and `to`. */
export async function readHealthHours(store: DailyStore, channel: string, from: string, to: string) {
  const id = formatHealthId(channel);
  const ids = await findUsedIds(store, id, { from: from.slice(0, 10), to: to.slice(0, 10) });
  const pages = await readBuckets(store, ids, [`hour#${from}`, `hour#${to}${afterAll}`]);
  return pages.flat().map((item) =>
    readingOf(item, (each) => {
      const { key, figures } = dailySumOf(each);
      return { ...parseHourKey(key), figures };
    }),
  );
}

export const createSumReader = (store: Store): SumReader => ({
  async *monthAccounts(month) {
    const range = ['account#', `account#${afterAll}`] as const;
    const items = await readSorted(store, listMonthIds(month), range);
    yield items.map((item) => readingOf(item, accountMonthOf));
  },
  async accountMonths(wanted) {
    const keys = new Map(
      wanted.map(({ month, account }) => [`${month} ${account}`, buildMonthKey(month, account)]),
    );
    const possible = [...keys.values()].filter(({ period }) => Buffer.byteLength(period) <= sortKeyBytesMax);
    const daily = new Table(store.tables, store.target.stack, 'daily');
    const items = await daily.read(possible.map(attributesOf));
    return items.map((item) => readingOf(item, accountMonthOf));
  },
  async *served({ from, to }, names) {
    const ids = await findUsedIds(store, servedId, { from, to });
    const attributes = names && ['id', 'period', ...names];
    const items = await readSorted(store, ids, buildDaysRange({ from, to }), attributes);
    yield sumBuckets(items.map((item) => readingOf(item, dailySumOf)));
  },
  hours: (channel, from, to) => readHealthHours(store, channel, from, to),
  async *minutes(fromMs, toMs) {
    const lastMs = toMs - 1;
    // Older minutes are removed. A wrong range must not read a partition for each day since 1970.
    const firstMs = Math.max(fromMs, toMs - keptMs);
    const range = [formatMinutePeriod(formatIso(firstMs)), formatMinutePeriod(formatIso(lastMs))] as const;
    for (let atMs = firstMs - (firstMs % dayMs); atMs <= lastMs; atMs += dayMs)
      for await (const page of readDailyItems(store, formatMinutesId(formatIso(atMs).slice(0, 10)), range))
        yield page.map((item) => readingOf(item, minuteItemOf));
  },
});

const formatIso = (ms: number): string => new Date(ms).toISOString();

const readingOf = <Row>(item: Attributes, read: (item: Attributes) => Row): Reading<Row> =>
  tryReading(item, `daily ${item['id']?.S} ${item['period']?.S}`, read);

const compareByPeriod = (a: Attributes, b: Attributes): number =>
  compareCodeUnits(a['period']?.S ?? '', b['period']?.S ?? '');

function sumBuckets(items: readonly Reading<DailySum>[]): Reading<ServedDay>[] {
  const unread = items.flatMap((each) => ('row' in each ? [] : [each]));
  const read = items.flatMap((each) => ('row' in each ? [each.row] : []));
  const sums = Map.groupBy(read, ({ key }) => key.period);
  const added = [...sums].map(([period, buckets]) => {
    const all = buckets.map(({ figures }) => figures);
    const [figures = noFigures] = all.length === 1 ? all : [sumFigures(all)];
    return Object.assign(parseServedKey({ id: servedId, period }), { figures });
  });
  return [...unread, ...added.map((row) => ({ row }))];
}

function accountMonthOf(item: Attributes): AccountMonth {
  const { key, figures, firstDay } = dailySumOf(item);
  return { ...parseMonthKey(key), figures, firstDay };
}

function minuteItemOf(item: Attributes) {
  const { key, figures } = dailySumOf(item);
  return { startMs: parseMinutePeriod(key.period) ?? 0, figures };
}
