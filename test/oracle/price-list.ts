import { exactYuan, nano } from './exact.ts';

/** A row of `charges`, as docs/tables.md describes it. */
export interface ChargeText extends RatesText {
  id: number;
  from?: string;
  type: 'non-billing' | 'times-billing' | 'token-billing';
  models: string[];
  tiers?: (RatesText & { above: number })[];
  service_tiers?: Record<string, number>;
  /** The factor of the service tier that is charged. */
  factor?: number | string;
  /** The factors of the open window and of the customer. */
  agreed?: number[];
  windows?: WindowText[];
}

/** Hours of a rule. A `to` at or before `from` is on the next day. */
export interface WindowText extends RatesText {
  name: string;
  days?: string[];
  from: string;
  to: string;
  zone: string;
  except?: string[];
  factor?: number;
  tiers?: (RatesText & { above: number })[];
  service_tiers?: Record<string, number>;
}

/** An entry of `prices` of an account, or of its price group. */
export interface CustomerPriceText extends RatesText {
  models: string[];
  from?: string;
  until?: string;
  factor?: number;
  type?: ChargeText['type'];
  tiers?: (RatesText & { above: number })[];
  service_tiers?: Record<string, number>;
}

/** Yuan per 1,000 tokens. */
interface RatesText {
  input?: number | string;
  output?: number | string;
  cached_input?: number | string;
  cache_write?: number | string;
  cache_write_1h?: number | string;
}

/** Tokens of a call. `input` includes cache reads and cache writes. */
export interface Tokens {
  input: number;
  output: number;
  cached?: number;
  written?: number;
  writtenForHour?: number;
}

/** The row that prices a call starting then: the latest `from`, then the lowest id. */
export function ruleAt(list: readonly ChargeText[], model: string, atMs: number): ChargeText | undefined {
  const since = ({ from }: ChargeText): number => (from === undefined ? -Infinity : Date.parse(from));
  const naming = list.filter((row) => row.models.includes(model) && since(row) <= atMs);
  const latest = Math.max(...naming.map(since));
  return naming.filter((row) => since(row) === latest).toSorted((a, b) => a.id - b.id)[0];
}

/** The rule as it prices a call starting then, by its open window if there is one. */
export function ruleIn(rule: ChargeText | undefined, atMs: number): ChargeText | undefined {
  const window = rule?.windows?.find((each) => isOpen(each, atMs));
  if (!rule || !window) return rule;
  if (window.factor !== undefined) return { ...rule, agreed: [window.factor] };
  const { name: _, days: __, from: ___, to: ____, zone: _____, except: ______, ...prices } = window;
  return { id: rule.id, models: rule.models, type: rule.type, ...prices };
}

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const format =
    formats.get(timeZone) ??
    new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'medium', timeZone });
  formats.set(timeZone, format);
  return format;
}

/** Reads the clock of the window's zone: Swedish formats it as `2026-11-30 09:00:00`. */
function isOpen({ days, from, to, zone, except = [] }: WindowText, atMs: number): boolean {
  const [today = '', clock = ''] = formatOf(zone).format(atMs).split(' ');
  const time = clock.slice(0, 5);
  const noon = Date.parse(`${today}T12:00:00Z`);
  const begins = (ms: number): boolean => {
    const weekday = new Date(ms).toUTCString().slice(0, 3).toLowerCase();
    return (days ?? [weekday]).includes(weekday) && !except.includes(new Date(ms).toISOString().slice(0, 10));
  };
  if (from < to) return from <= time && time < to && begins(noon);
  return (from <= time && begins(noon)) || (time < to && begins(noon - 24 * 3_600_000));
}

/** The rule of a call by its start, its hour and its customer. */
export const priceOf = (
  list: readonly ChargeText[],
  model: string,
  { startedMs, prices }: { startedMs: number; prices?: readonly CustomerPriceText[] | undefined },
): ChargeText | undefined =>
  ruleOf(ruleIn(ruleAt(list, model, startedMs), startedMs), model, pricesAt(prices, startedMs));

/** The entries that apply to a call starting then. */
const pricesAt = (prices: readonly CustomerPriceText[] = [], atMs: number): CustomerPriceText[] =>
  prices
    .filter(({ from }) => from === undefined || Date.parse(from) <= atMs)
    .filter(({ until }) => until === undefined || atMs < Date.parse(until));

/** The rule with the customer's price: the first entry that names the model, of the account, then of its group. */
export function ruleOf(
  rule: ChargeText | undefined,
  model: string,
  prices: readonly CustomerPriceText[] = [],
): ChargeText | undefined {
  const own = prices.find(({ models }) => models.some((pattern) => matches(pattern, model)));
  if (!rule || !own) return rule;
  const { agreed = [] } = rule;
  if (own.factor !== undefined) return { ...rule, agreed: [...agreed, own.factor] };
  return { type: 'token-billing', ...own, id: rule.id, agreed };
}

/** `*` matches any text. */
function matches(pattern: string, name: string): boolean {
  const [first = '', ...parts] = pattern.split('*');
  if (parts.length === 0) return pattern === name;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const [index, part] of parts.entries()) {
    const isLast = index === parts.length - 1;
    const found = isLast ? name.length - part.length : name.indexOf(part, at);
    if (found < at || !name.endsWith(isLast ? part : '')) return false;
    at = found + part.length;
  }
  return true;
}

/** In billionths of a yuan, rounded once. Without a rule the model is free. */
export function costOf(rule: ChargeText | undefined, tokens: Tokens): bigint {
  if (rule === undefined || rule.type === 'non-billing') return 0n;
  const agreed = (rule.agreed ?? []).reduce(
    (product, each) => (product * exactYuan(each)) / exactYuan(1),
    exactYuan(1),
  );
  if (rule.type === 'times-billing')
    return nano((exactYuan(rule.output ?? 0) * exactYuan(rule.factor ?? 1) * agreed) / exactYuan(1) ** 2n);
  const { input, output, cached = 0, written = 0, writtenForHour = 0 } = tokens;
  const rates = (rule.tiers ?? []).findLast(({ above }) => input > above) ?? rule;
  const usual = rates.input ?? 0;
  const sums: [number, number | string][] = [
    [input - cached - written - writtenForHour, usual],
    [cached, rates.cached_input ?? usual],
    [written, rates.cache_write ?? usual],
    [writtenForHour, rates.cache_write_1h ?? usual],
    [output, rates.output ?? 0],
  ];
  const perThousand = sums.reduce((sum, [count, rate]) => sum + BigInt(count) * exactYuan(rate), 0n);
  // Digits below 10^-18 never decide a rounding.
  return nano((perThousand * exactYuan(rule.factor ?? 1) * agreed) / (exactYuan(1_000) * exactYuan(1)));
}

/** The factor of a service tier under either of OpenAI's names for it; undefined without a factor. */
export function factorOf(rule: ChargeText | undefined, tier = ''): number | undefined {
  const tiers = new Map(Object.entries(rule?.service_tiers ?? {}));
  const other = tier === 'fast' ? 'priority' : tier === 'priority' ? 'fast' : tier;
  return tiers.get(tier) ?? tiers.get(other);
}

/**
 * The rule as it prices one call: by the reported tier, or else the requested one if it was sent; never above the
 * dearer of the requested and the standard tier.
 */
export function servedIn(
  rule: ChargeText | undefined,
  { asked, reported }: Partial<Record<'asked' | 'reported', string | undefined>>,
): ChargeText | undefined {
  if (rule?.type !== 'token-billing') return rule;
  const ofAsked = factorOf(rule, asked) ?? 1;
  const served = reported === undefined || reported === 'auto' ? ofAsked : (factorOf(rule, reported) ?? 1);
  return { ...rule, factor: Math.min(served, Math.max(1, ofAsked)) };
}

/** The highest possible cost of this many input tokens, whatever part was cached. */
export function dearestInput(rule: ChargeText | undefined, input: number): bigint {
  if (rule?.type !== 'token-billing') return 0n;
  const ways = [{}, { cached: input }, { written: input }, { writtenForHour: input }];
  return ways
    .map((way) => costOf(rule, { input, output: 0, ...way }))
    .reduce((most, cost) => (cost > most ? cost : most), 0n);
}

/**
 * Reads the rule that a ledger row names in `price`: `rule:tokens:in:out[:cached:written:for an
 * hour][:above=N][:xFACTOR]`.
 */
export function ruleOfText(text: string): ChargeText {
  const [id = '', type, ...parts] = text.split(':');
  const rule = { id: Number(id), models: [] };
  if (type === 'free') return { ...rule, type: 'non-billing' };
  const factor = parts.find((part) => part.startsWith('x'))?.slice(1);
  if (type === 'call')
    return { ...rule, type: 'times-billing', output: String(parts[0]), ...(factor && { factor }) };
  const [input, output, cached_input, cache_write, cache_write_1h] = parts.filter(
    (part) => !/[=x]/.test(part),
  );
  if (type !== 'tokens' || input === undefined || output === undefined) throw new Error(`no price: ${text}`);
  const cache =
    cached_input && cache_write && cache_write_1h ? { cached_input, cache_write, cache_write_1h } : {};
  return { ...rule, type: 'token-billing', input, output, ...cache, ...(factor && { factor }) };
}
