import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { CloseWrite, ReserveWrite } from '../../../billing/quota-writes.ts';
import {
  entryAttribute,
  flagsAttribute,
  flagsIndex,
  closeRecordAttribute,
  numberAttribute,
} from './quota-attributes.ts';

/** The expression part of an UpdateItem. Says in DynamoDB's language what `shared/billing/quota-writes.ts` says. */
export interface Expression {
  ConditionExpression: string;
  UpdateExpression: string;
  ExpressionAttributeNames: Record<string, string>;
  ExpressionAttributeValues: Record<string, AttributeValue>;
  ReturnValues?: 'UPDATED_NEW';
}

/** Collects the clauses of one expression. Every name is an alias: `open`, `plan` and more are reserved words. */
class Clauses {
  readonly conditions: string[] = [];
  readonly set: string[] = [];
  readonly remove: string[] = [];
  readonly names: Record<string, string> = {};
  readonly values: Record<string, AttributeValue> = {};
  readonly #valueAliases = new Map<string, string>();

  /** A path of names, each as an alias: `path('open', id)` -> `#open.#id1`. */
  path(attribute: string, ...inner: string[]): string {
    return [attribute, ...inner].map((name) => this.#alias(name)).join('.');
  }

  /** The same value under the same name twice is sent once. Aliases are short: two writes a call add up. */
  value(name: string, value: AttributeValue): string {
    const alias = this.#valueAliases.get(name) ?? `:${this.#valueAliases.size}`;
    this.#valueAliases.set(name, alias);
    this.values[alias] = value;
    return alias;
  }

  expression(returned?: Expression['ReturnValues']): Expression {
    const remove = this.remove.length > 0 ? ` REMOVE ${this.remove.join(', ')}` : '';
    return {
      ConditionExpression: this.conditions.join(' AND '),
      UpdateExpression: `SET ${this.set.join(', ')}${remove}`,
      ExpressionAttributeNames: this.names,
      ExpressionAttributeValues: this.values,
      ...(returned && { ReturnValues: returned }),
    };
  }

  #alias(name: string): string {
    const known = Object.entries(this.names).find(([, value]) => value === name);
    if (known) return known[0];
    const alias = `#${Object.keys(this.names).length}`;
    this.names[alias] = name;
    return alias;
  }
}

export function reserveExpression(write: ReserveWrite, openEntriesMax: number): Expression {
  const { id, entry, slot, busy, rate } = write;
  const c = new Clauses();
  const open = c.path('open', id);
  const available = c.path('available');
  const amount = c.value('amount', numberAttribute(entry.amount));
  c.conditions.push(
    `attribute_exists(${c.path('account')})`,
    `attribute_not_exists(${open})`,
    `size(${c.path('open')}) < ${c.value('openMax', numberAttribute(openEntriesMax))}`,
  );
  if (entry.amount > 0n) c.conditions.push(`${available} >= ${amount}`);
  c.set.push(
    `${open} = ${c.value('entry', entryAttribute(entry))}`,
    `${available} = ${available} - ${amount}`,
  );
  if (slot) {
    countUp(c, c.path('plan', slot.key), slot.limit, 'slotMax');
    c.remove.push(c.path('plan', slot.staleKey));
  }
  if (busy) countUp(c, c.path('busy', busy.key), busy.max, 'busyMax');
  if (rate) addRate(c, rate);
  return c.expression('UPDATED_NEW');
}

export function closeExpression(write: CloseWrite, refund: bigint): Expression {
  const { id, entry, closeRecord, releaseSlot } = write;
  const c = new Clauses();
  const open = c.path('open', id);
  // Open, and as this entry: a tombstone under the same id is not what this close may undo.
  c.conditions.push(`${open}[${flagsIndex}] = ${c.value('flags', flagsAttribute(entry))}`);
  const add = (path: string, value: string): void => void c.set.push(`${path} = ${path} + ${value}`);
  add(c.path('available'), c.value('refund', numberAttribute(refund)));
  add(c.path('spent'), c.value('charge', numberAttribute(closeRecord.charge)));
  add(c.path('settled'), c.value('one', numberAttribute(1)));
  c.set.push(`${c.path('last')} = ${c.value('close', closeRecordAttribute(closeRecord))}`);
  if (releaseSlot && entry.slot !== '') countDown(c, c.path('plan', entry.slot));
  if (entry.busy) countDown(c, c.path('busy', entry.key));
  c.remove.push(open);
  return c.expression();
}

export function tombstoneExpression(id: string, entry: AttributeValue): Expression {
  const c = new Clauses();
  const open = c.path('open', id);
  c.conditions.push(`attribute_exists(${c.path('account')})`, `attribute_not_exists(${open})`);
  c.set.push(`${open} = ${c.value('entry', entry)}`);
  return c.expression();
}

function countUp(c: Clauses, path: string, max: number | null, name: string): void {
  const zero = c.value('zero', numberAttribute(0));
  const one = c.value('one', numberAttribute(1));
  if (max !== null) {
    const limit = c.value(name, numberAttribute(max));
    // A limit of 0 admits nobody, not even the first.
    c.conditions.push(`(${path} < ${limit} OR (attribute_not_exists(${path}) AND ${limit} > ${zero}))`);
  }
  c.set.push(`${path} = if_not_exists(${path}, ${zero}) + ${one}`);
}

/** A counter that a close takes from is there: the reserve put it. */
function countDown(c: Clauses, path: string): void {
  c.set.push(`${path} = ${path} - ${c.value('one', numberAttribute(1))}`);
}

function addRate(c: Clauses, { key, minute, max, starts }: NonNullable<ReserveWrite['rate']>): void {
  const path = c.path('rate', key);
  const minutePath = c.path('rate', key, 'minute');
  const now = c.value('minute', numberAttribute(minute));
  if (starts) {
    c.conditions.push(`(attribute_not_exists(${path}) OR ${minutePath} < ${now})`);
    const first = { M: { minute: numberAttribute(minute), count: numberAttribute(1) } };
    c.set.push(`${path} = ${c.value('rate', first)}`);
    return;
  }
  const countPath = c.path('rate', key, 'count');
  c.conditions.push(`${minutePath} = ${now}`, `${countPath} < ${c.value('rpm', numberAttribute(max))}`);
  c.set.push(`${countPath} = ${countPath} + ${c.value('one', numberAttribute(1))}`);
}
