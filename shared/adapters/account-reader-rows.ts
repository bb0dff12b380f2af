import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { parseYuan, type NanoYuan } from '../billing/amount.ts';
import type { LedgerRow } from '../relay/account-reader.ts';
import type { Attributes } from './quota-attributes.ts';

const kinds = ['settled', 'released', 'expired', 'cancelled', 'grant'] as const;

/** A row of `ledger` from its attributes. Throws an Error that names the attribute that no function would write. */
export function ledgerRowOf(attributes: Attributes): LedgerRow {
  const kind = kinds.find((one) => one === attributes['kind']?.S);
  if (kind === undefined) throw unreadable('kind');
  const cost = yuan(attributes['cost'], 'cost');
  return {
    account: text(attributes['account'], 'account'),
    id: text(attributes['id'], 'id'),
    at: time(attributes['at']),
    kind,
    endpoint: attributes['endpoint']?.S,
    model: attributes['model']?.S,
    key: attributes['key']?.S,
    charge: yuan(attributes['charge'], 'charge') ?? 0n,
    reserved: yuan(attributes['reserved'], 'reserved') ?? 0n,
    promptTokens: count(attributes['prompt_tokens']),
    completionTokens: count(attributes['completion_tokens']),
    estimated: attributes['estimated']?.BOOL === true,
    end: attributes['end']?.S,
    price: attributes['price']?.S,
    planSlot: attributes['plan_slot']?.S,
    official: attributes['official']?.BOOL === true,
    cost,
    amount: yuan(attributes['amount'], 'amount'),
    reason: attributes['reason']?.S,
  };
}

function yuan(value: AttributeValue | undefined, name: string): NanoYuan | undefined {
  if (value === undefined) return undefined;
  const amount = value.N === undefined ? undefined : parseYuan(value.N);
  if (amount === undefined) throw unreadable(name);
  return amount;
}

const count = (value: AttributeValue | undefined): number | undefined =>
  value?.N === undefined ? undefined : Number(value.N);

function text(value: AttributeValue | undefined, name: string): string {
  if (value?.S === undefined) throw unreadable(name);
  return value.S;
}

function time(value: AttributeValue | undefined): number {
  const milliseconds = Date.parse(text(value, 'at'));
  if (Number.isNaN(milliseconds)) throw unreadable('at');
  return milliseconds;
}

const unreadable = (name: string): Error => new Error(`ledger: ${name} is not what functions write`);
