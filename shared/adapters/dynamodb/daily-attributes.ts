/** Converts sums of `daily` to the update that adds them, and items back to sums. Amounts are exact yuan. */
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { marshall, NumberValueImpl as NumberValue } from '@aws-sdk/util-dynamodb';
import { formatYuan, parseYuan } from '../../billing/amount.ts';
import { amountNames, countNames, noFigures, type DailyFigures } from '../../billing/daily/daily-figures.ts';
import type { DailyDifference } from '../../billing/audit/daily-audit.ts';
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
  const { calls } = found.counts;
  const { charged } = found.amounts;
  const same = [
    calls === undefined ? 'attribute_not_exists(calls)' : 'calls = :foundCalls',
    charged === undefined ? 'attribute_not_exists(charged)' : 'charged = :foundCharged',
  ];
  const values = {
    ...(calls !== undefined && { ':foundCalls': calls }),
    ...(charged !== undefined && { ':foundCharged': NumberValue.from(formatYuan(charged)) }),
  };
  return {
    ...update,
    ConditionExpression: same.join(' AND '),
    ExpressionAttributeValues: { ...update.ExpressionAttributeValues, ...marshall(values) },
  };
}

function addToDaily(stack: string, { key, figures }: DailySum) {
  const added: [string, number | NumberValue][] = [];
  for (const name of countNames) {
    const count = figures.counts[name] ?? 0;
    if (count !== 0) added.push([name, count]);
  }
  for (const name of amountNames) {
    const amount = figures.amounts[name] ?? 0n;
    if (amount !== 0n) added.push([name, NumberValue.from(formatYuan(amount))]);
  }
  const day = dayOf(key);
  // The index `by_day` lists the items of a day; items of hours remove themselves.
  const [set, value] = day === undefined ? ['expires', expiryOf(key)] : ['day', day];
  const adds = added.map(([name]) => `${name} :${name}`).join(', ');
  return {
    TableName: physicalTableName(stack, 'daily'),
    Key: marshall({ ...key }),
    UpdateExpression: `SET #set = :set${adds === '' ? '' : ` ADD ${adds}`}`,
    ExpressionAttributeNames: { '#set': set },
    ExpressionAttributeValues: marshall({
      ':set': value,
      ...Object.fromEntries(added.map(([name, count]) => [`:${name}`, count])),
    }),
  };
}

/** Throws an Error that names the first attribute with an unexpected form. */
export function dailySumOf(attributes: Attributes): DailySum {
  const figures: DailyFigures = { counts: { ...noFigures.counts }, amounts: { ...noFigures.amounts } };
  for (const name of countNames) {
    const count = Number(attributes[name]?.N ?? 0);
    if (!Number.isSafeInteger(count)) throw unreadable(name);
    if (count !== 0) figures.counts[name] = count;
  }
  for (const name of amountNames) {
    const amount = parseYuan(attributes[name]?.N ?? '0');
    if (amount === undefined) throw unreadable(name);
    if (amount !== 0n) figures.amounts[name] = amount;
  }
  return {
    key: { id: attributes['id']?.S ?? '', period: attributes['period']?.S ?? '' },
    figures,
  };
}

const unreadable = (name: string): Error => new Error(`daily: ${name} is not what functions write`);
