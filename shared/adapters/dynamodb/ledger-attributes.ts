/** Converts rows of `ledger` to and from DynamoDB attributes. Amounts are exact decimals in yuan. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall, NumberValueImpl as NumberValue } from '@aws-sdk/util-dynamodb';
import { formatYuan, parseYuan, type NanoYuan } from '../../billing/amount.ts';
import type { CloseRow, GrantLedgerRow, LedgerRow } from '../../billing/ledger-row.ts';
import type { Attributes } from './attributes.ts';

const exact = (amount: NanoYuan): NumberValue => NumberValue.from(formatYuan(amount));

export function ledgerAttributes(row: LedgerRow): Attributes {
  const amounts =
    row.kind === 'grant'
      ? { amount: exact(row.amount) }
      : {
          charge: exact(row.charge),
          reserved: exact(row.reserved),
          cost: row.cost === undefined ? undefined : exact(row.cost),
          bought: row.bought === undefined ? undefined : exact(row.bought),
        };
  return marshall({ ...row, ...amounts }, { removeUndefinedValues: true });
}

const closeKinds = ['settled', 'released', 'expired', 'cancelled'] as const;

/**
 * A row of `ledger` from its attributes. Throws an Error that names the first attribute with an unexpected
 * form.
 */
export const ledgerRowOf = (attributes: Attributes): LedgerRow =>
  attributes['kind']?.S === 'grant' ? grantRowOf(attributes) : closeRowOf(attributes);

export const grantRowOf = (attributes: Attributes): GrantLedgerRow => ({
  account: text(attributes['account'], 'account'),
  id: text(attributes['id'], 'id'),
  at: time(attributes['at']),
  kind: 'grant',
  amount: yuan(attributes['amount'], 'amount'),
  reason: attributes['reason']?.S ?? '',
});

export function closeRowOf(attributes: Attributes): CloseRow {
  const kind = closeKinds.find((one) => one === attributes['kind']?.S);
  if (kind === undefined) throw unreadable('kind');
  return {
    account: text(attributes['account'], 'account'),
    id: text(attributes['id'], 'id'),
    at: time(attributes['at']),
    kind,
    endpoint: attributes['endpoint']?.S,
    model: text(attributes['model'], 'model'),
    alias: attributes['alias']?.S,
    key: text(attributes['key'], 'key'),
    charge: yuan(attributes['charge'], 'charge'),
    reserved: yuan(attributes['reserved'], 'reserved'),
    prompt_tokens: count(attributes['prompt_tokens']),
    completion_tokens: count(attributes['completion_tokens']),
    cached_tokens: count(attributes['cached_tokens']),
    cache_write_tokens: count(attributes['cache_write_tokens']),
    cache_write_1h_tokens: count(attributes['cache_write_1h_tokens']),
    estimated: attributes['estimated']?.BOOL === true ? true : undefined,
    end: attributes['end']?.S,
    price: text(attributes['price'], 'price'),
    plan_slot: attributes['plan_slot']?.S,
    budget: attributes['budget']?.S,
    official: attributes['official']?.BOOL === true ? true : undefined,
    cost: attributes['cost'] && yuan(attributes['cost'], 'cost'),
    channel: attributes['channel']?.S,
    upstream_model: attributes['upstream_model']?.S,
    bought: attributes['bought'] && yuan(attributes['bought'], 'bought'),
    first_content_ms: count(attributes['first_content_ms']),
    flag: attributes['flag']?.S,
  };
}

function yuan(value: AttributeValue | undefined, name: string): NanoYuan {
  const amount = value?.N === undefined ? undefined : parseYuan(value.N);
  if (amount === undefined) throw unreadable(name);
  return amount;
}

const count = (value: AttributeValue | undefined): number | undefined =>
  value?.N === undefined ? undefined : Number(value.N);

function text(value: AttributeValue | undefined, name: string): string {
  if (value?.S === undefined) throw unreadable(name);
  return value.S;
}

function time(value: AttributeValue | undefined): string {
  const written = text(value, 'at');
  if (Number.isNaN(Date.parse(written))) throw unreadable('at');
  return written;
}

const unreadable = (name: string): Error => new Error(`ledger: ${name} is not what functions write`);
