/**
 * Reads a price list in US dollars per token: LiteLLM's model_prices_and_context_window.json, or CSV rows with the column names
 * of that list.
 */
import * as z from 'zod/mini';
import { partPrices, type PartPrice } from '../../wire/chat-response.ts';
import { parseDecimal } from '../../billing/money.ts';
import { minuteOf, weekdays, type HourWindow, type Weekday } from '../../billing/schedule.ts';
import { findClock, isTimeZone, utcOf } from '../../billing/wall-clock.ts';
import { modelName } from '../../config/rows/read-row.ts';
import type { ModelFacts } from '../../config/settings.ts';
import { isRecord, parseJson, recordsIn } from '../../wire/json.ts';
import { usageFailure } from '../plan.ts';

/** JSON text, or CSV rows including the header. */
export type PriceSource = string | string[][];

/** US dollars per token, as whole numbers of 10^-`dollarDecimals` dollars. Of a part absent: as `input`. */
export type ListedRates = { input: bigint; output: bigint } & Partial<
  Record<PartPrice, bigint | undefined>
> & {
    /** The list lacks the price of input or of output, which is 0 here. */
    isIncomplete?: boolean;
  };
export const rateNames: readonly ('input' | 'output' | PartPrice)[] = ['input', 'output', ...partPrices];
export const dollarDecimals = 18;

type ListedTier = ListedRates & { above: number };

export type ListedPrice = ListedRates & {
  model: string;
  /** Ascending. `above`: tokens of input. */
  tiers: ListedTier[];
  maxOutputTokens?: number | undefined;
  facts?: ModelFacts | undefined;
  /** `unread`: hours that no windows can express, so only the standard price is known. */
  offPeak?: OffPeak | 'unread' | undefined;
  serviceTiers: Record<string, number>;
  /** Price fields that no rule can express, except those that cost the same as a field that is read. */
  unreadFields: string[];
};

export interface PriceList {
  prices: ListedPrice[];
  /** Entries without a text price: other kinds of models, other units, invalid names. */
  skipped: string[];
}

/** Throws a Failure if the list has no price for a text model. */
export function readPriceList(source: PriceSource): PriceList {
  const list = typeof source === 'string' ? parseJson(source) : Object.fromEntries(parseCsvEntries(source));
  if (!isRecord(list)) throw usageFailure('this file is not valid JSON');
  const entries = Object.entries(list);
  const prices = entries.flatMap(([model, entry]): ListedPrice[] => {
    const price = isRecord(entry) && isModelName(model) ? readListedPrice(entry) : undefined;
    const facts = price && readFacts(model, entry as Record<string, unknown>);
    return price
      ? [{ model, ...price, facts, tiers: price.tiers.toSorted((a, b) => a.above - b.above) }]
      : [];
  });
  if (prices.length === 0) throw usageFailure('this file has no prices of chat models');
  const read = new Set(prices.map(({ model }) => model));
  return {
    prices,
    skipped: entries.flatMap(([model]) => (read.has(model) ? [] : [model.slice(0, 60) || '(no name)'])),
  };
}

const inputWords = { image: 'vision', audio: 'audio_input', file: 'pdf_input', video: 'video_input' };

/** Only a plain name gets its provider as vendor: the provider of a name with a path or a prefix hosts models of other vendors. */
function readFacts(model: string, raw: Record<string, unknown>): ModelFacts | undefined {
  const context = parseWholeNumber(raw['max_input_tokens']);
  const output = parseWholeNumber(raw['max_output_tokens']);
  const provider = raw['litellm_provider'];
  const isOwn =
    typeof provider === 'string' &&
    /^[a-z]{2,20}$/.test(provider) &&
    !/[/.]/.test(model.replaceAll(/\d\.\d/g, ''));
  const takes = Object.entries(inputWords).flatMap(([kind, word]) =>
    raw[`supports_${word}`] === true ? [kind] : [],
  );
  const facts = {
    ...(isOwn && { vendor: provider }),
    ...(context !== undefined && { context }),
    ...(output !== undefined && { output }),
    ...(takes.length > 0 && { takes: ['text', ...takes] }),
    ...(raw['supports_audio_output'] === true && { makes: ['text', 'audio'] }),
  };
  return Object.keys(facts).length === 0 ? undefined : facts;
}

export const isModelName = (name: string): boolean => z.safeParse(modelName, name).success;

function parseCsvEntries([head = [], ...rows]: string[][]): [string, unknown][] {
  const names = head.map((name) => name.toLowerCase());
  for (const wanted of ['model', 'input_cost_per_token', 'output_cost_per_token'])
    if (!names.includes(wanted)) throw usageFailure(`the CSV header lacks the column ${wanted}`);
  return rows.map((row) => {
    const entry = Object.fromEntries(names.map((name, at) => [name, row[at] || undefined]));
    return [entry['model'] ?? '', entry];
  });
}

/** The names under which an entry writes rates; absent: it has none. */
type RateWords = Partial<Record<(typeof rateNames)[number], string>>;

/**
 * A missing input or output price is that of `base`, else 0. Returns nothing if both are missing or a price is
 * invalid.
 */
function readRates(record: unknown, words: RateWords, base?: ListedRates): ListedRates | undefined {
  if (!isRecord(record)) return undefined;
  const rates: Partial<ListedRates> = {};
  for (const name of rateNames) {
    const written = record[words[name] ?? ''];
    if (written === undefined || written === null || written === '') continue;
    const rate = isScalar(written) ? parseDecimal(written, dollarDecimals) : undefined;
    if (rate === undefined || rate < 0n) return undefined;
    rates[name] = rate;
  }
  const { input, output } = rates;
  if (input === undefined && output === undefined) return undefined;
  const isIncomplete = base === undefined && (input === undefined || output === undefined);
  return {
    ...rates,
    input: input ?? base?.input ?? 0n,
    output: output ?? base?.output ?? 0n,
    ...(isIncomplete && { isIncomplete }),
  };
}

const isScalar = (value: unknown): value is number | string =>
  typeof value === 'number' || typeof value === 'string';

/** A whole number above zero, else undefined: lists have texts and placeholders there, too. */
function parseWholeNumber(value: unknown): number | undefined {
  const number = isScalar(value) ? Number(value) : 0;
  return Number.isSafeInteger(number) && number > 0 ? number : undefined;
}

/** LiteLLM's names of prices. */
export const perToken = {
  input: 'input_cost_per_token',
  output: 'output_cost_per_token',
  cached_input: 'cache_read_input_token_cost',
  cache_write: 'cache_creation_input_token_cost',
  cache_write_1h: 'cache_creation_input_token_cost_above_1hr',
};

const textModes = new Set<unknown>(['chat', 'completion', 'responses', 'embedding']);
/** Such as `input_cost_per_token_above_200k_tokens`; names with more behind it are prices of other kinds of calls. */
const stepPattern = /^(?:input|output)_cost_per_token(_above_(\d+)(k?)_tokens)$/;

/** Returns undefined for an entry without a price for a text model. */
function readListedPrice(raw: Record<string, unknown>): Omit<ListedPrice, 'model'> | undefined {
  if (!textModes.has(raw['mode'] || 'chat')) return undefined;
  const ranges = rangesOf(raw['tiered_pricing']);
  const rates = readRates(raw, perToken) ?? ranges[0];
  if (!rates) return undefined;
  const suffixes = new Map<number, string>();
  for (const name of Object.keys(raw)) {
    const [, suffix, count, thousands] = stepPattern.exec(name) ?? [];
    const above = Number(count) * (thousands === 'k' ? 1_000 : 1);
    if (suffix !== undefined && raw[name] !== null && above >= 1) suffixes.set(above, suffix);
  }
  const steps = [...suffixes].flatMap(([above, suffix]): ListedTier[] => {
    const words = Object.entries(perToken).map(([name, word]) => [name, word + suffix]);
    const own = readRates(raw, Object.fromEntries(words) as RateWords, rates);
    return own ? [{ above, ...own }] : [];
  });
  const readFields = ['', ...suffixes.values()].flatMap((suffix) =>
    Object.values(perToken).map((word) => word + suffix),
  );
  const serviceTiers = readServiceTiers(raw, readFields);
  const ofTiers = Object.keys(serviceTiers).flatMap((tier) => readFields.map((word) => `${word}_${tier}`));
  return {
    serviceTiers,
    unreadFields: listUnread(raw, new Set([...readFields, ...ofTiers])),
    ...(Object.fromEntries(rateNames.map((name) => [name, rates[name]])) as Pick<
      ListedRates,
      (typeof rateNames)[number]
    >),
    tiers: [...steps, ...ranges.slice(1)],
    // Embeddings have no output.
    isIncomplete:
      raw['mode'] !== 'embedding' && [rates, ...ranges].some(({ isIncomplete }) => isIncomplete === true),
    maxOutputTokens: parseWholeNumber(raw['max_output_tokens']),
    offPeak: readOffPeak(raw['off_peak_pricing'], rates),
  };
}

/** The tiers that calls can ask for, by the names that LiteLLM adds to fields [docs.litellm.ai, November 2026]. */
const tierNames = ['priority', 'flex', 'fast', 'ultrafast', 'balanced'];

/** A tier is read if it multiplies all prices of the entry by one factor, which is all that a rule can express. */
function readServiceTiers(raw: Record<string, unknown>, carried: readonly string[]): Record<string, number> {
  const priced = carried.filter((word) => Number(raw[word]) > 0);
  const found = tierNames.flatMap((tier) => {
    const factors = priced.map((word) => Number(raw[`${word}_${tier}`]) / Number(raw[word]));
    const factor = Number(factors[0]?.toFixed(6));
    return factor > 0 && factors.every((each) => Math.abs(each - factor) < 1e-9) ? [[tier, factor]] : [];
  });
  return Object.fromEntries(found) as Record<string, number>;
}

/** Lists the fields of the entry and its ranges whose price is neither read nor equal to one that is read. */
function listUnread(raw: Record<string, unknown>, carried: ReadonlySet<string>): string[] {
  const found = [raw, ...recordsIn(raw['tiered_pricing'])].flatMap((record) =>
    Object.entries(record).flatMap(([name, value]) => {
      const [, direction = '', kind = ''] = /^(input|output)_cost_per_(?:(\w+)_)?token/.exec(name) ?? [];
      const usual = name.endsWith('cache_hit')
        ? perToken.cached_input
        : sameKinds.has(kind)
          ? `${direction}_cost_per_token`
          : '';
      const isPriced = /cost|multiplier/.test(name) && (isRecord(value) || Number(value) > 0);
      return isPriced && !carried.has(name) && value !== record[usual] ? [name] : [];
    }),
  );
  return [...new Set(found)];
}

/** Kinds of tokens that usually cost the same as text tokens. */
const sameKinds: ReadonlySet<string> = new Set(['audio', 'image', 'reasoning', 'video']);

/** The other way to write tiers: a list of {range: [from, to], ...prices}. The first begins at 0. */
const rangesOf = (tiered: unknown): ListedTier[] =>
  (Array.isArray(tiered) ? tiered : [])
    .flatMap((entry): ListedTier[] => {
      const range: unknown = isRecord(entry) ? entry['range'] : undefined;
      const above: unknown = Array.isArray(range) ? range[0] : undefined;
      const rates = readRates(entry, perToken);
      return typeof above === 'number' && Number.isSafeInteger(above) && rates ? [{ above, ...rates }] : [];
    })
    .toSorted((a, b) => a.above - b.above);

/** LiteLLM's `off_peak_pricing`: hours whose rates replace all others, tiers included [docs.litellm.ai, "Off-Peak Pricing", 2026-10-10]. */
interface OffPeak {
  hours: (Pick<HourWindow, 'from' | 'to' | 'zone'> & { days?: Weekday[] })[];
  rates: ListedRates;
}

/** Reads hours in UTC and weekdays in `weekday_timezone`, which becomes the zone of the windows. */
function readOffPeak(block: unknown, base: ListedRates): ListedPrice['offPeak'] {
  if (!isRecord(block) || Object.keys(block).length === 0) return undefined;
  const own = readRates(block, perToken, base);
  const zone = typeof block['weekday_timezone'] === 'string' ? block['weekday_timezone'] : 'UTC';
  const offset = isTimeZone(zone) ? findFixedOffset(zone) : undefined;
  const rules = [block, ...(Array.isArray(block['windows']) ? block['windows'] : [])].filter(
    (rule) => isRecord(rule) && rule['hours_utc'] !== undefined,
  );
  if (!own || offset === undefined || rules.length === 0) return 'unread';
  const open = new Set<number>();
  for (const rule of rules) {
    const minutes = readMinutes(rule['hours_utc']);
    const days = readDays(rule['weekdays']);
    if (!minutes || !days) return 'unread';
    for (const day of days)
      for (const minute of minutes)
        open.add(day * dayMinutes + ((minute + offset + dayMinutes) % dayMinutes));
  }
  return { hours: buildHours(open, zone), rates: { ...base, ...own } };
}

const dayMinutes = 24 * 60;

/** Returns how many minutes a zone is ahead of UTC. Undefined if its clocks change in the year. */
function findFixedOffset(zone: string): number | undefined {
  const [winter, summer] = [0, 6].map((month) => {
    const ms = Date.UTC(2026, month, 1);
    const clock = findClock(zone)(ms);
    return (utcOf(clock) - ms) / 60_000 + clock.minute;
  });
  return winter === summer ? winter : undefined;
}

const hoursPattern = /^(\d{1,2}:\d{2})-(\d{1,2}:\d{2})$/;

/** Reads `16:30-00:30`, or a list of such ranges. Equal ends mean a whole day. */
function readMinutes(hours: unknown): number[] | undefined {
  const found: number[] = [];
  for (const text of [hours].flat()) {
    const [, from, to] = (typeof text === 'string' && hoursPattern.exec(text.replaceAll(' ', ''))) || [];
    if (from === undefined || to === undefined) return undefined;
    const [start, end] = [from, to].map((time) => minuteOf(time.padStart(5, '0'))) as [number, number];
    for (let minute = start; minute < (start < end ? end : end + dayMinutes); minute += 1)
      found.push(minute % dayMinutes);
  }
  return found;
}

/** Reads ISO numbers, or English names by their first three letters. */
function readDays(written: unknown): number[] | undefined {
  const all = weekdays.map((_, at) => at);
  if (written === undefined || written === null) return all;
  const days = [written]
    .flat()
    .map((day) =>
      typeof day === 'number'
        ? day - 1
        : weekdays.findIndex((name) => typeof day === 'string' && day.toLowerCase().startsWith(name)),
    );
  return days.every((day) => all.includes(day)) ? days : undefined;
}

/** Builds windows that end on the day on which they begin. Days with the same hours share a window. */
function buildHours(open: ReadonlySet<number>, zone: string): OffPeak['hours'] {
  const runs = weekdays.flatMap((day, at) => {
    const isOpen = (minute: number): boolean => minute < dayMinutes && open.has(at * dayMinutes + minute);
    const minutes = Array.from({ length: dayMinutes + 1 }, (_, minute) => minute);
    const starts = minutes.filter((minute) => isOpen(minute) && !(minute > 0 && isOpen(minute - 1)));
    return starts.map((from) => ({
      day,
      from,
      to: minutes.find((minute) => minute > from && !isOpen(minute)) ?? 0,
    }));
  });
  return [...Map.groupBy(runs, ({ from, to }) => `${from}-${to}`).values()].flatMap((same) => {
    const [first] = same;
    if (!first) return [];
    const days = same.length < weekdays.length ? { days: same.map(({ day }) => day) } : {};
    return [{ ...days, from: formatMinute(first.from), to: formatMinute(first.to), zone }];
  });
}

const formatMinute = (minute: number): string =>
  [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, '0')).join(':');
