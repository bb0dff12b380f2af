/** Converts sums of `daily` to the update that adds them, and items back to sums. Amounts are exact yuan. */
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { marshall, NumberValueImpl as NumberValue } from '@aws-sdk/util-dynamodb';
import { formatYuan, parseYuan } from '../../billing/amount.ts';
import { amountNames, countNames, noFigures, type DailyFigures } from '../../billing/daily/daily-figures.ts';
import type { DailyDifference } from '../../billing/audit/daily-audit.ts';
import type { DailyKey } from '../../billing/daily/daily-key.ts';
import { dayOf, expiryOf } from '../../billing/daily/daily-keys.ts';
import { dailySums, type DailySum } from '../../billing/daily/daily-sums.ts';
import type { LedgerRow } from '../../billing/ledger-row.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import type { Attributes } from './attributes.ts';

/** For the transaction that puts these ledger rows: the two are written together or not at all. */
export const countInDaily = (stack: string, rows: readonly LedgerRow[]): TransactWriteItem[] =>
  dailySums(rows).map((sum) => ({ Update: addToDaily(stack, sum) }));

/** The update that corrects an item, if it still has the figures that were found. */
export function correction(stack: string, { key, found, missing }: DailyDifference) {
  const update = addToDaily(stack, { key, figures: missing });
  // A call or a grant adds to one of these.
  const { calls = 0, grants = 0 } = found.counts;
  const { charged = 0n } = found.amounts;
  const values = {
    ':foundCalls': calls,
    ':foundGrants': grants,
    ':foundCharged': NumberValue.from(formatYuan(charged)),
  };
  const same = [
    sameAs('calls', ':foundCalls', calls === 0),
    sameAs('grants', ':foundGrants', grants === 0),
    sameAs('charged', ':foundCharged', charged === 0n),
  ];
  return {
    ...update,
    ConditionExpression: same.join(' AND '),
    ExpressionAttributeValues: { ...update.ExpressionAttributeValues, ...marshall(values) },
  };
}

const sameAs = (name: string, value: string, isZero: boolean): string =>
  isZero ? `(attribute_not_exists(${name}) OR ${name} = ${value})` : `${name} = ${value}`;

export function addToDaily(stack: string, { key, figures }: DailySum) {
  const added: [string, number | NumberValue][] = [];
  for (const name of countNames) {
    const count = figures.counts[name] ?? 0;
    if (count !== 0) added.push([name, count]);
  }
  for (const name of amountNames) {
    const amount = figures.amounts[name] ?? 0n;
    if (amount !== 0n) added.push([name, NumberValue.from(formatYuan(amount))]);
  }
  const [set, value] = markOf(key);
  const adds = added.map(([name]) => `${name} :${name}`).join(', ');
  const clauses = [...(set ? [`SET ${set} = :set`] : []), ...(adds === '' ? [] : [`ADD ${adds}`])];
  return {
    TableName: physicalTableName(stack, 'daily'),
    Key: marshall({ ...key }),
    UpdateExpression: clauses.join(' '),
    ...(set && { ExpressionAttributeNames: { [set]: set.slice(1) } }),
    ExpressionAttributeValues: marshall({
      ...(set && { ':set': value }),
      ...Object.fromEntries(added.map(([name, count]) => [`:${name}`, count])),
    }),
  };
}

/** The index `by_day` lists the items of a day; those of hours and minutes remove themselves. */
function markOf(key: DailyKey): [name: '#day' | '#expires' | undefined, value?: string | number] {
  const [day, expires] = [dayOf(key), expiryOf(key)];
  if (day !== undefined) return ['#day', day];
  return expires === undefined ? [undefined] : ['#expires', expires];
}

/** Throws an Error that names the first attribute with an unexpected form. */
export function dailySumOf(attributes: Attributes): DailySum {
  const figures: DailyFigures = { counts: { ...noFigures.counts }, amounts: { ...noFigures.amounts } };
  for (const name of countNames) {
    const count = Number(numberIn(attributes, name));
    if (!Number.isSafeInteger(count)) throw unreadable(name);
    if (count !== 0) figures.counts[name] = count;
  }
  for (const name of amountNames) {
    const amount = parseYuan(numberIn(attributes, name));
    if (amount === undefined) throw unreadable(name);
    if (amount !== 0n) figures.amounts[name] = amount;
  }
  return {
    key: { id: attributes['id']?.S ?? '', period: attributes['period']?.S ?? '' },
    figures,
  };
}

/** An absent figure is 0; one that is no number is not. */
function numberIn(attributes: Attributes, name: string): string {
  const value = attributes[name];
  if (value && value.N === undefined) throw unreadable(name);
  return value?.N ?? '0';
}

const unreadable = (name: string): Error => new Error(`daily: ${name} is not what functions write`);
