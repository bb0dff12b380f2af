/**
 * Converts the item of `quotas` to and from DynamoDB attributes. Amounts are bigints, because JavaScript
 * numbers would round them. An open entry is a list, because attribute names would double its size. The list is [until, amount, input, key, model, price, slot, flags, period of the budget]; the last is absent without one; flags are
 * o (official), t (tombstone), q (queued). The places of a key are a set in an attribute of its own, because
 * DynamoDB adds to sets and removes from them at the top level only, and drops a set with its last value.
 */
import { eachPart, firstCounts, laterCounts, partCountsOf } from '../../../wire/input-parts.ts';
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { CloseKind, CloseRecord, OpenEntry, QuotaItem, RateCount } from '../../../billing/quota-item.ts';
import { Poisoned } from '../../../relay/ports/store-errors.ts';
import type { Attributes } from '../table-client.ts';
import type { PartOfAccount } from '../../../billing/quota-writes.ts';

// Built without the SDK's marshalling for speed: every call waits for two of these writes.
export const numberAttribute = (value: bigint | number): AttributeValue => ({ N: String(value) });
export const textAttribute = (value: string): AttributeValue => ({ S: value });

/** The index of the flags in an entry's list, and of the end of its lease. */
export const flagsIndex = 7;
export const untilIndex = 0;

/** Where the map `rate` has the account's minute. */
export const rateKey = 'account';

const placesPrefix = 'places:';
export const placesName = (key: string): string => placesPrefix + key;

export const flagsAttribute = ({ official, tombstone, queued }: OpenEntry): AttributeValue =>
  textAttribute(`${official ? 'o' : ''}${tombstone ? 't' : ''}${queued ? 'q' : ''}`);

export const entryAttribute = (entry: OpenEntry): AttributeValue => ({
  L: [
    numberAttribute(entry.until),
    numberAttribute(entry.amount),
    numberAttribute(entry.input),
    textAttribute(entry.key),
    textAttribute(entry.model),
    textAttribute(entry.price),
    textAttribute(entry.slot),
    flagsAttribute(entry),
    ...(entry.budget === undefined ? [] : [textAttribute(entry.budget)]),
  ],
});

/**
 * [id, kind, charge, at, endpoint, prompt tokens, completion tokens, end, flags, cost, tokens read from the cache,
 * written to it, written for an hour, channel, upstream model, first content ms, bought, flag, price, model that answered, alias]; unknown
 * values are empty, and left out at the end. New values go to the end: readers of older versions ignore what
 * they do not know. So do the counts of parts of the input that came later than these three.
 */
export function closeRecordAttribute(closeRecord: CloseRecord): AttributeValue {
  const { id, kind, charge, at, endpoint, promptTokens, completionTokens, estimated, end, cost } =
    closeRecord;
  return {
    L: withoutEmptyEnd([
      textAttribute(id),
      textAttribute(kind),
      numberAttribute(charge),
      numberAttribute(at),
      textAttribute(endpoint ?? ''),
      optionalNumber(promptTokens),
      optionalNumber(completionTokens),
      textAttribute(end ?? ''),
      textAttribute(estimated === true ? 'e' : ''),
      optionalNumber(cost),
      ...firstCounts.map((name) => optionalNumber(closeRecord.cache?.[name])),
      textAttribute(closeRecord.channel ?? ''),
      textAttribute(closeRecord.upstreamModel ?? ''),
      optionalNumber(closeRecord.firstContentMs),
      optionalNumber(closeRecord.bought),
      textAttribute(closeRecord.flag ?? ''),
      textAttribute(closeRecord.price ?? ''),
      textAttribute(closeRecord.model ?? ''),
      textAttribute(closeRecord.alias ?? ''),
      ...laterCounts.map((name) => optionalNumber(closeRecord.cache?.[name])),
    ]),
  };
}

const withoutEmptyEnd = (list: AttributeValue[]): AttributeValue[] =>
  list.slice(0, list.findLastIndex((value) => value.S !== '') + 1);

const optionalNumber = (value: bigint | number | undefined): AttributeValue =>
  value === undefined ? textAttribute('') : numberAttribute(value);

/** Creates every map, because DynamoDB does not create parent maps on a write into one. */
export function emptyAttributes(of: PartOfAccount): Attributes {
  const zero = numberAttribute(0);
  return {
    ...partKey(of),
    ...(of.part ? { part: numberAttribute(of.part) } : {}),
    available: zero,
    spent: zero,
    granted: zero,
    settled: zero,
    open: { M: {} },
    plan: { M: {} },
    rate: { M: {} },
  };
}

/** Keys of parts: part 0 has the account's name, part 3 `<account>#3`. Rows of accounts named like that are refused. */
export const partName = ({ account, part = 0 }: PartOfAccount): string =>
  part === 0 ? account : `${account}#${part}`;

export const partKey = (of: PartOfAccount): Record<'account', AttributeValue> => ({
  account: { S: partName(of) },
});

/** The account and part of an item. The attribute `part` decides: a name may end like a part's key. */
export function partOf(attributes: Attributes): { account: string; part: number } {
  const name = attributes['account']?.S ?? '';
  const part = Number(attributes['part']?.N ?? 0);
  const suffix = `#${part}`;
  return part > 0 && name.endsWith(suffix)
    ? { account: name.slice(0, -suffix.length), part }
    : { account: name, part: 0 };
}

/** Reads an item that may have been written by something other than the functions. Throws Poisoned. */
export function readQuota(attributes: Attributes): QuotaItem {
  try {
    return quotaOf(attributes);
  } catch (error) {
    throw new Poisoned(error instanceof Error ? error.message : 'quotas: not readable', { cause: error });
  }
}

/** Throws an Error that names the first attribute with an unexpected form. */
export function quotaOf(attributes: Attributes): QuotaItem {
  text(attributes['account'], 'account');
  return {
    ...partOf(attributes),
    parts: attributes['parts'] ? count(attributes['parts'], 'parts') : 1,
    made: attributes['made'] ? count(attributes['made'], 'made') : 1,
    available: amount(attributes['available'], 'available'),
    spent: amount(attributes['spent'], 'spent'),
    granted: amount(attributes['granted'], 'granted'),
    moved: attributes['moved'] ? amount(attributes['moved'], 'moved') : 0n,
    overdraft: attributes['overdraft']?.BOOL,
    settled: count(attributes['settled'], 'settled'),
    open: mapOf(attributes['open'], entryOf),
    plan: mapOf(attributes['plan'], (value) => count(value, 'plan')),
    places: placesOf(attributes),
    rate: rateOf(attributes['rate']?.M?.[rateKey]),
    last: attributes['last']?.L ? closeRecordOf(attributes['last'].L) : undefined,
  };
}

function placesOf(attributes: Attributes): QuotaItem['places'] {
  const places = new Map<string, ReadonlySet<string>>();
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith(placesPrefix)) places.set(name.slice(placesPrefix.length), new Set(value.SS));
  return places;
}

const rateOf = (value: AttributeValue | undefined): RateCount | undefined =>
  value && {
    minute: count(value.M?.['minute'], 'rate.minute'),
    count: count(value.M?.['count'], 'rate.count'),
    tokens: optionalCount(value.M?.['tokens'], 'rate.tokens'),
  };

function entryOf(value: AttributeValue): OpenEntry {
  const [until, taken, input, key, model, price, slot, flags, budget] = value.L ?? [];
  const marks = text(flags, 'open.flags');
  return {
    until: count(until, 'open.until'),
    amount: amount(taken, 'open.amount'),
    input: amount(input, 'open.input'),
    key: text(key, 'open.key'),
    model: text(model, 'open.model'),
    price: text(price, 'open.price'),
    slot: text(slot, 'open.slot'),
    budget: budget?.S,
    official: marks.includes('o'),
    tombstone: marks.includes('t'),
    queued: marks.includes('q') || undefined,
  };
}

function closeRecordOf(list: AttributeValue[]): CloseRecord {
  const [id, kind, charge, at, endpoint, prompt, completion, end, flags, cost, ...later] = list;
  const [channel, upstream, firstContent, bought, flag, ...last] = later.slice(firstCounts.length);
  const [price, model, alias, ...lastCounts] = last;
  const counted = new Map([
    ...firstCounts.map((name, at) => [name, later[at]] as const),
    ...laterCounts.map((name, at) => [name, lastCounts[at]] as const),
  ]);
  return {
    id: text(id, 'last.id'),
    kind: text(kind, 'last.kind') as CloseKind,
    charge: amount(charge, 'last.charge'),
    at: count(at, 'last.at'),
    endpoint: endpoint?.S || undefined,
    promptTokens: optionalCount(prompt, 'last.prompt_tokens'),
    completionTokens: optionalCount(completion, 'last.completion_tokens'),
    estimated: flags?.S === 'e' || undefined,
    end: end?.S || undefined,
    cost: optionalAmount(cost, 'last.cost'),
    cache: partCountsOf(
      eachPart('count', (part) => optionalCount(counted.get(part.count), `last.${part.count}`)),
    ),
    channel: channel?.S || undefined,
    upstreamModel: upstream?.S || undefined,
    firstContentMs: optionalCount(firstContent, 'last.first_content_ms'),
    bought: optionalAmount(bought, 'last.bought'),
    flag: flag?.S || undefined,
    price: price?.S || undefined,
    model: model?.S || undefined,
    alias: alias?.S || undefined,
  };
}

function mapOf<T>(value: AttributeValue | undefined, read: (value: AttributeValue) => T): Map<string, T> {
  return new Map(Object.entries(value?.M ?? {}).map(([key, inner]) => [key, read(inner)]));
}

function amount(value: AttributeValue | undefined, name: string): bigint {
  if (value?.N === undefined || !/^-?\d+$/.test(value.N))
    throw new Error(`quotas: ${name} is not a whole number`);
  return BigInt(value.N);
}

const count = (value: AttributeValue | undefined, name: string): number => Number(amount(value, name));

const optionalCount = (value: AttributeValue | undefined, name: string): number | undefined =>
  value?.N === undefined ? undefined : count(value, name);

const optionalAmount = (value: AttributeValue | undefined, name: string): bigint | undefined =>
  value?.N === undefined ? undefined : amount(value, name);

function text(value: AttributeValue | undefined, name: string): string {
  if (value?.S === undefined) throw new Error(`quotas: ${name} is not text`);
  return value.S;
}
