/**
 * Encodes the items of `quotas` and builds their writes. Amounts are bigints, because numbers would round them. An open
 * entry is a list, because attribute names would double its size: [until, amount, input, key, model, price, slot, flags,
 * budget period or null, tariff or null, search price]. Flags are o (official), t (tombstone), m (metered), q (queued). `=`
 * is a tariff equal to the price. A key's permits are a set in a top-level attribute, because DynamoDB adds to sets only
 * there; it drops empty sets.
 */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import {
  closeFields,
  type CloseRecord,
  type OpenEntry,
  type QuotaItem,
  type RateCount,
  type AccountShard,
  refundOf,
  type CloseWrite,
  type RateWrite,
  type ReserveWrite,
} from '../../../billing/quota-item.ts';
import { Poisoned } from '../../../relay/ports/store-errors.ts';
import type { Attributes } from '../table-client.ts';

// Built by hand for speed: every call waits for two of these writes.
export const encodeNumber = (value: bigint | number): AttributeValue => ({ N: String(value) });
export const encodeText = (value: string): AttributeValue => ({ S: value });

export const flagsIndex = 7;
export const untilIndex = 0;

export const rateKey = 'account';

const permitsPrefix = 'places:';
export const buildPermitsName = (key: string): string => permitsPrefix + key;

export const encodeFlags = ({ official, tombstone, metered, queued }: OpenEntry): AttributeValue =>
  encodeText(`${official ? 'o' : ''}${tombstone ? 't' : ''}${metered ? 'm' : ''}${queued ? 'q' : ''}`);

const sameAsPrice = '=';
const absent: AttributeValue = { NULL: true };

export const encodeEntry = (entry: OpenEntry): AttributeValue => ({
  L: [
    encodeNumber(entry.until),
    encodeNumber(entry.amount),
    encodeNumber(entry.input),
    encodeText(entry.key),
    encodeText(entry.model),
    encodeText(entry.price),
    encodeText(entry.slot),
    encodeFlags(entry),
    entry.budget === undefined ? absent : encodeText(entry.budget),
    entry.tariff === undefined
      ? absent
      : encodeText(entry.tariff === entry.price ? sameAsPrice : entry.tariff),
    ...(entry.searchPrice === undefined ? [] : [encodeNumber(entry.searchPrice)]),
  ],
});

/** The list of the last close begins with four fields that every close has. */
const lastFields = Object.entries({
  id: 'text',
  kind: 'text',
  charge: 'amount',
  at: 'count',
  ...closeFields,
}) as [keyof CloseRecord, 'text' | 'count' | 'amount' | 'flag' | 'tags'][];

/** Unknown values are empty texts, and left out at the end. Older versions ignore fields that they do not know. */
export const encodeCloseRecord = (closeRecord: CloseRecord): AttributeValue => ({
  L: trimEmptyEnd(
    lastFields.map(([name]) => {
      const value = closeRecord[name];
      if (typeof value === 'bigint' || typeof value === 'number') return encodeNumber(value);
      if (typeof value === 'object') return { M: mapValues(value, encodeText) };
      return encodeText(value === true ? 'e' : value || '');
    }),
  ),
});

const trimEmptyEnd = (list: AttributeValue[]): AttributeValue[] =>
  list.slice(0, list.findLastIndex((value) => value.S !== '') + 1);

/** Creates every map, because DynamoDB does not create parent maps. */
export function buildEmptyQuota(of: AccountShard): Attributes {
  const zero = encodeNumber(0);
  return {
    ...buildShardKey(of),
    ...(of.shard ? { part: encodeNumber(of.shard) } : {}),
    available: zero,
    spent: zero,
    granted: zero,
    settled: zero,
    open: { M: {} },
    plan: { M: {} },
    rate: { M: {} },
  };
}

/** A whole item for a restore, without the minute's counts and without permits. */
export const encodeQuota = (item: QuotaItem): Attributes => ({
  ...buildEmptyQuota(item),
  ...mapValues({ available: item.available, spent: item.spent, granted: item.granted }, encodeNumber),
  settled: encodeNumber(item.settled),
  open: { M: mapValues(Object.fromEntries(item.open), encodeEntry) },
  plan: { M: mapValues(Object.fromEntries(item.plan), encodeNumber) },
  ...(item.metered !== undefined && { metered: encodeNumber(item.metered) }),
  ...(item.counters !== undefined && { counters: encodeNumber(item.counters) }),
  ...(item.highestShardCount > 1 && {
    parts: encodeNumber(1),
    made: encodeNumber(item.highestShardCount),
  }),
  ...(item.last && { last: encodeCloseRecord(item.last) }),
});

/** Shard 0 has the account's name, shard 3 `<account>#3`. Accounts with such names are refused. */
export const buildShardName = ({ account, shard = 0 }: AccountShard): string =>
  shard === 0 ? account : `${account}#${shard}`;

export const buildShardKey = (of: AccountShard): Record<'account', AttributeValue> => ({
  account: { S: buildShardName(of) },
});

/** The attribute `part` decides, because an account's name may end like a shard's key. */
export function parseShard(attributes: Attributes): AccountShard & { shard: number } {
  const name = attributes['account']?.S ?? '';
  const shard = Number(attributes['part']?.N ?? 0);
  const suffix = `#${shard}`;
  return shard > 0 && name.endsWith(suffix)
    ? { account: name.slice(0, -suffix.length), shard }
    : { account: name, shard: 0 };
}

/** For items that somebody else may have written. Throws Poisoned. */
export function readQuota(attributes: Attributes): QuotaItem {
  try {
    return decodeQuota(attributes);
  } catch (error) {
    throw new Poisoned(error instanceof Error ? error.message : 'quotas: not readable', { cause: error });
  }
}

export function decodeQuota(attributes: Attributes): QuotaItem {
  decodeText(attributes['account'], 'account');
  return {
    ...parseShard(attributes),
    shardCount: attributes['parts'] ? decodeCount(attributes['parts'], 'parts') : 1,
    highestShardCount: attributes['made'] ? decodeCount(attributes['made'], 'made') : 1,
    available: decodeAmount(attributes['available'], 'available'),
    spent: decodeAmount(attributes['spent'], 'spent'),
    granted: decodeAmount(attributes['granted'], 'granted'),
    moved: attributes['moved'] ? decodeAmount(attributes['moved'], 'moved') : 0n,
    overdraft: attributes['overdraft']?.BOOL,
    counters: attributes['counters'] && decodeCount(attributes['counters'], 'counters'),
    metered: attributes['metered'] && decodeAmount(attributes['metered'], 'metered'),
    settled: decodeCount(attributes['settled'], 'settled'),
    open: decodeMap(attributes['open'], decodeEntry),
    plan: decodeMap(attributes['plan'], (value) => decodeCount(value, 'plan')),
    permits: decodePermits(attributes),
    rate: decodeRate(attributes['rate']?.M?.[rateKey]),
    last: attributes['last']?.L ? decodeCloseRecord(attributes['last'].L) : undefined,
  };
}

function decodePermits(attributes: Attributes): QuotaItem['permits'] {
  const places = new Map<string, ReadonlySet<string>>();
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith(permitsPrefix)) places.set(name.slice(permitsPrefix.length), new Set(value.SS));
  return places;
}

const decodeRate = (value: AttributeValue | undefined): RateCount | undefined =>
  value && {
    minute: decodeCount(value.M?.['minute'], 'rate.minute'),
    count: decodeCount(value.M?.['count'], 'rate.count'),
    tokens: decodeOptionalCount(value.M?.['tokens'], 'rate.tokens'),
  };

function decodeEntry(value: AttributeValue): OpenEntry {
  const [until, taken, input, key, model, price, slot, flags, budget, tariff, search] = value.L ?? [];
  const marks = decodeText(flags, 'open.flags');
  return {
    until: decodeCount(until, 'open.until'),
    amount: decodeAmount(taken, 'open.amount'),
    input: decodeAmount(input, 'open.input'),
    key: decodeText(key, 'open.key'),
    model: decodeText(model, 'open.model'),
    price: decodeText(price, 'open.price'),
    tariff: tariff?.S === sameAsPrice ? price?.S : tariff?.S,
    slot: decodeText(slot, 'open.slot'),
    budget: budget?.S,
    searchPrice: search && decodeAmount(search, 'open.searchPrice'),
    official: marks.includes('o'),
    tombstone: marks.includes('t'),
    metered: marks.includes('m') || undefined,
    queued: marks.includes('q') || undefined,
  };
}

function decodeCloseRecord(list: AttributeValue[]): CloseRecord {
  const [id, kind, charge, at] = list;
  const record: Record<string, unknown> = {
    id: decodeText(id, 'last.id'),
    kind: decodeText(kind, 'last.kind'),
    charge: decodeAmount(charge, 'last.charge'),
    at: decodeCount(at, 'last.at'),
  };
  for (const [i, [name, form]] of lastFields.entries()) {
    const value = list[i];
    if (form === 'flag') record[name] = value?.S === 'e' || undefined;
    else if (form === 'text') record[name] = value?.S || undefined;
    else if (form === 'tags') record[name] = value?.M && decodeTags(value);
    else if (value?.N !== undefined)
      record[name] = (form === 'count' ? decodeCount : decodeAmount)(value, `last.${name}`);
  }
  return record as CloseRecord;
}

export const decodeTags = (value: AttributeValue): Record<string, string> =>
  Object.fromEntries(decodeMap(value, (each) => decodeText(each, 'tags')));

function decodeMap<T>(value: AttributeValue | undefined, read: (value: AttributeValue) => T): Map<string, T> {
  return new Map(Object.entries(value?.M ?? {}).map(([key, inner]) => [key, read(inner)]));
}

function decodeAmount(value: AttributeValue | undefined, name: string): bigint {
  if (value?.N === undefined || !/^-?\d+$/.test(value.N))
    throw new Error(`quotas: ${name} is not a whole number`);
  return BigInt(value.N);
}

const decodeCount = (value: AttributeValue | undefined, name: string): number =>
  Number(decodeAmount(value, name));

const decodeOptionalCount = (value: AttributeValue | undefined, name: string): number | undefined =>
  value?.N === undefined ? undefined : decodeCount(value, name);

function decodeText(value: AttributeValue | undefined, name: string): string {
  if (value?.S === undefined) throw new Error(`quotas: ${name} is not text`);
  return value.S;
}

// Writes of reservations. `shared/billing/quota-item.ts` has the same rules in plain code, and the contract suite compares
// both. States of an open entry:
//
//     absent --reserve--> open --renew--> open --close--> absent
//     absent --tombstone--> open with flag t --close--> absent
//     absent --reserve--> open with flag q --renew that begins--> open --close--> absent

export interface Expression {
  ConditionExpression: string;
  UpdateExpression: string;
  ExpressionAttributeNames: Record<string, string>;
  ExpressionAttributeValues: Record<string, AttributeValue>;
  ReturnValues?: 'ALL_NEW';
}

export type Change = Omit<Expression, 'ReturnValues'>;

/** Collects the clauses of one expression. All names get aliases, because some are reserved words. */
export class Clauses {
  readonly conditions: string[] = [];
  readonly set: string[] = [];
  readonly remove: string[] = [];
  readonly add: string[] = [];
  readonly take: string[] = [];
  readonly names: Record<string, string> = {};
  readonly values: Record<string, AttributeValue> = {};
  readonly #valueAliases = new Map<string, string>();

  /** `path('open', id)` -> `#0.#1`. */
  path(attribute: string, ...inner: string[]): string {
    return [attribute, ...inner].map((name) => this.#alias(name)).join('.');
  }

  /** A repeated name sends its value once. Aliases are short, because each call waits for two of these writes. */
  value(name: string, value: AttributeValue): string {
    const alias = this.#valueAliases.get(name) ?? `:${this.#valueAliases.size}`;
    this.#valueAliases.set(name, alias);
    this.values[alias] = value;
    return alias;
  }

  number(name: string, value: bigint | number): string {
    return this.value(name, encodeNumber(value));
  }

  expression(returned?: Expression['ReturnValues']): Expression {
    const clauses = { SET: this.set, REMOVE: this.remove, ADD: this.add, DELETE: this.take };
    return {
      ConditionExpression: this.conditions.join(' AND '),
      UpdateExpression: Object.entries(clauses)
        .flatMap(([name, list]) => (list.length > 0 ? [`${name} ${list.join(', ')}`] : []))
        .join(' '),
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

export const hasItem = (c: Clauses): string => `attribute_exists(${c.path('account')})`;
export const isNotOpen = (c: Clauses, id: string): string => `attribute_not_exists(${c.path('open', id)})`;
const hasRoom = (c: Clauses, entriesMax: number): string =>
  `size(${c.path('open')}) < ${c.number('openMax', entriesMax)}`;
export const hasShardCount = (c: Clauses, count: number): string => {
  const path = c.path('parts');
  const same = `${path} = ${c.number('parts', count)}`;
  return count === 1 ? `(${same} OR attribute_not_exists(${path}))` : same;
};
const hasFreePermit = (c: Clauses, permits: string, max: number): string => {
  const limit = c.number('placesMax', max);
  return `(size(${permits}) < ${limit} OR (attribute_not_exists(${permits}) AND ${limit} > ${addZero(c)}))`;
};
const balanceCovers = (c: Clauses, amount: string): string => `${c.path('available')} >= ${amount}`;
export const hasNoOverdraft = (c: Clauses): string => `attribute_not_exists(${c.path('overdraft')})`;
/** One of several shards must not go below zero, unless all of them have the overdraft mark. */
export const mayTake = (c: Clauses, shard: number, taken: bigint): string => {
  const isCovered = balanceCovers(c, c.number('taken', taken));
  const only = shard === 0 ? ` OR ${hasShardCount(c, 1)}` : '';
  return `(${isCovered} OR attribute_exists(${c.path('overdraft')})${only})`;
};
export const markOverdraft = (c: Clauses): void =>
  void c.set.push(`${c.path('overdraft')} = ${c.value('overdraft', { BOOL: true })}`);
const isOpenUntil = (c: Clauses, id: string, until: number): string =>
  `${c.path('open', id)}[${untilIndex}] = ${c.number(`until ${until}`, until)}`;
/** Compares the flags, so that a close cannot remove a tombstone with the same id. */
export const isOpenAs = (c: Clauses, id: string, entry: OpenEntry): string =>
  `${c.path('open', id)}[${flagsIndex}] = ${c.value('flags', encodeFlags(entry))}`;
/** A limit of 0 refuses the first call, too, whose counter does not exist. */
const isBelow = (c: Clauses, counter: string, limit: string): string =>
  `(${counter} < ${limit} OR (attribute_not_exists(${counter}) AND ${limit} > ${addZero(c)}))`;
const hasNoMinuteOf = (rate: string, minute: string, now: string): string =>
  `(attribute_not_exists(${rate}) OR ${minute} < ${now})`;

const addZero = (c: Clauses): string => c.number('zero', 0);
const addOne = (c: Clauses): string => c.number('one', 1);

export function buildReserve(write: ReserveWrite): Expression {
  const { id, entry, slot, permit, rate, shardCount, openMax, balanceNeeded = entry.amount } = write;
  const c = new Clauses();
  const available = c.path('available');
  const taken = entry.metered ? 0n : entry.amount;
  const amount = c.number('amount', taken);
  c.conditions.push(hasItem(c), isNotOpen(c, id));
  if (openMax !== undefined) c.conditions.push(hasRoom(c, openMax));
  for (const [of, until] of write.uncountedLeases ?? []) c.conditions.push(isOpenUntil(c, of, until));
  if (shardCount !== undefined) c.conditions.push(hasShardCount(c, shardCount));
  if (taken > 0n) {
    const needed = balanceNeeded === taken ? amount : c.number('atLeast', balanceNeeded);
    c.conditions.push(balanceCovers(c, needed), hasNoOverdraft(c));
  }
  c.set.push(
    `${c.path('open', id)} = ${c.value('entry', encodeEntry(entry))}`,
    `${available} = ${available} - ${amount}`,
  );
  if (slot) {
    countUp(c, c.path('plan', slot.key), { max: slot.limit, name: 'slotMax' });
    c.remove.push(c.path('plan', slot.staleKey));
  }
  if (permit) {
    const permits = c.path(buildPermitsName(permit.key));
    c.conditions.push(hasFreePermit(c, permits, permit.max));
    c.add.push(`${permits} ${c.value('id', { SS: [id] })}`);
  }
  if (rate) addRate(c, rate);
  return c.expression('ALL_NEW');
}

/** @param overdrawn number of shards to mark, if this close overdraws one */
export function buildClose(write: CloseWrite, overdrawn?: number): Change {
  const { id, shard = 0, entry, closeRecord, releaseSlot, ifNotRenewed } = write;
  const refund = refundOf(write);
  const c = new Clauses();
  c.conditions.push(isOpenAs(c, id, entry));
  if (ifNotRenewed) c.conditions.push(isOpenUntil(c, id, entry.until));
  if (overdrawn !== undefined) {
    c.conditions.push(hasShardCount(c, overdrawn));
    markOverdraft(c);
  } else if (refund < 0n) c.conditions.push(mayTake(c, shard, -refund));
  const add = (path: string, value: string): void => void c.set.push(`${path} = ${path} + ${value}`);
  if (entry.metered) addMetered(c, closeRecord.charge);
  else add(c.path('available'), c.number('refund', refund));
  add(c.path('spent'), c.number('charge', closeRecord.charge));
  add(c.path('settled'), addOne(c));
  c.set.push(`${c.path('last')} = ${c.value('close', encodeCloseRecord(closeRecord))}`);
  if (releaseSlot && entry.slot !== '') countDown(c, c.path('plan', entry.slot));
  if (write.rateTokens !== undefined && write.rateTokens > 0)
    add(c.path('rate', rateKey, 'tokens'), c.number('rateTokens', write.rateTokens));
  c.remove.push(c.path('open', id));
  // Without effect if the call has no permit.
  c.take.push(`${c.path(buildPermitsName(entry.key))} ${c.value('id', { SS: [id] })}`);
  return c.expression();
}

/** Metered charges are not taken from the balance. */
export function addMetered(c: Clauses, charge: bigint): void {
  const path = c.path('metered');
  c.set.push(`${path} = if_not_exists(${path}, ${addZero(c)}) + ${c.number('charge', charge)}`);
}

function countUp(c: Clauses, path: string, { max, name }: { max: number | null; name: string }): void {
  if (max !== null) c.conditions.push(isBelow(c, path, c.value(name, encodeNumber(max))));
  c.set.push(`${path} = if_not_exists(${path}, ${addZero(c)}) + ${addOne(c)}`);
}

/** The reserve of this entry created the counter. */
function countDown(c: Clauses, path: string): void {
  c.set.push(`${path} = ${path} - ${addOne(c)}`);
}

function addRate(c: Clauses, { minute, max, tokensMax, tokens, starts }: RateWrite): void {
  const path = c.path('rate', rateKey);
  const minutePath = c.path('rate', rateKey, 'minute');
  const now = c.number('minute', minute);
  if (starts) {
    c.conditions.push(hasNoMinuteOf(path, minutePath, now));
    // A share of zero refuses the first call, too.
    if (Math.min(max ?? 1, tokensMax ?? 1) < 1)
      c.conditions.push(`attribute_not_exists(${c.path('account')})`);
    const counted = { minute, count: 1, tokens };
    c.set.push(`${path} = ${c.value('rate', { M: mapValues(counted, encodeNumber) })}`);
    return;
  }
  const counts: [string, number | undefined, number][] = [
    ['count', max, 1],
    ['tokens', tokensMax, tokens],
  ];
  c.conditions.push(`${minutePath} = ${now}`);
  for (const [name, limit, more] of counts) {
    const count = c.path('rate', rateKey, name);
    if (limit !== undefined) c.conditions.push(`${count} < ${c.number(`${name}Max`, limit)}`);
    c.set.push(`${count} = ${count} + ${c.number(`${name}More`, more)}`);
  }
}

const mapValues = <Value>(
  values: Record<string, Value>,
  to: (value: Value) => AttributeValue,
): Record<string, AttributeValue> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, to(value)]));
