/**
 * The facts on the models page. All of them are public: read endpoints have them, and prices and notices are in every account.
 */
import { inputParts } from '../../wire/chat-response.ts';
import { findNextChange, findOpenWindow, formatHours } from '../../billing/schedule.ts';
import {
  buildPrice,
  findFactor,
  multiplyRate,
  type PicoYuan,
  type Price,
  type PriceWindow,
  type PriceChange,
  type PriceRule,
  perMillion as millionPrice,
  priceDecimals,
  priceKinds,
  convertToPico,
  type WrittenRates,
  findRule,
} from '../../billing/price.ts';
import { formatDecimal } from '../../billing/money.ts';
import type { Settings } from '../../config/settings.ts';
import type { AccountNotice, PlanEntry } from '../../wire/public-api.ts';
import type { ModelTexts } from './english.ts';

export interface PageFacts {
  words: ModelTexts;
  /** The public base address including `/v1`. */
  baseUrl: string;
  models: string[];
  /** Set on the page of one model. */
  model?: string | undefined;
  /** The address names a model that is not one of them. */
  isUnknown?: boolean;
  modelFacts: NonNullable<Settings['modelFacts']>;
  aliases: { name: string; models: string[] }[];
  /** Models whose candidates are all in cooldown. */
  resting: ReadonlySet<string>;
  /** Sorted by id. */
  charges: PriceRule[];
  /** Prices that begin later, by time. */
  changes: PriceChange[];
  notices: AccountNotice[];
  /** Epoch milliseconds: decides which rules are in force. */
  nowMs: number;
  /** The calendar in which dates are written. */
  timeZone: string;
  /** Empty unless subscriptions are enabled. */
  plans: PlanEntry[];
  contact: string;
  relayClosed: boolean;
  accountPage: boolean;
}

/** A row of the price table. `when` names the calls that it applies to; it is empty in the row for all others. */
export interface PriceLine {
  when: string;
  /** Per million tokens; a text if the price has no such parts. */
  rates: { input: string; cached: string; output: string; others: string[] } | string;
}

/** Current prices first, then announced ones. */
export function listPriceLines(
  model: string,
  facts: Pick<PageFacts, 'charges' | 'changes' | 'nowMs' | 'timeZone' | 'words'>,
): PriceLine[] {
  const { charges, changes, nowMs, words } = facts;
  const announced = changes.filter(({ models }) => models.includes(model));
  const rule = findRule(charges, model, nowMs);
  return [
    ...(rule?.windows
      ? listWindowLines(rule, rule.windows, { ...facts, takeoverMs: announced[0]?.fromMs ?? Infinity })
      : listRuleLines(rule, '', words)),
    ...announced.flatMap(({ fromMs, rule }) => {
      const when = words.from(formatDate(fromMs, facts));
      return listRuleLines(rule, when, words).concat(listHours(rule, `${when}, `, words));
    }),
  ];
}

/** @param of the text with which each line begins */
function listHours({ windows = [], ...rule }: PriceRule, of: string, words: ModelTexts): PriceLine[] {
  const { id, type, models, anonymous } = rule;
  return windows.flatMap(({ factor, input = 0, output = 0, ...hours }) => {
    const when = `${of}${hours.name}: ${formatHours(hours)}`;
    if (factor !== undefined) return [{ when, rates: words.times(factor) }];
    // A window replaces all prices of the rule: a part without a price costs what the window's input costs.
    const replaced = { ...hours, id, type, models, anonymous, input, output, from: undefined };
    return listRuleLines(replaced, when, words);
  });
}

/** Lists the price now with its end, then those of other hours and of each window. */
function listWindowLines(
  rule: PriceRule,
  windows: readonly PriceWindow[],
  { nowMs, words, ...facts }: Pick<PageFacts, 'nowMs' | 'timeZone' | 'words'> & { takeoverMs: number },
): PriceLine[] {
  const open = findOpenWindow(windows, nowMs);
  const price = buildPrice(rule, [], open);
  const until = Math.min(findNextChange(windows, nowMs) ?? Infinity, facts.takeoverMs);
  const [now = { when: '', rates: words.free }] = listRuleLines(writeRule(rule, price), '', words);
  return [
    now,
    ...(until === Infinity
      ? []
      : [{ when: words.now, rates: words.priceUntil(formatDate(until, { ...facts, words })) }]),
    ...listRuleLines(rule, words.otherHours, words),
    ...listHours(rule, '', words),
  ];
}

/** Returns the rule with its prices after the factor. */
function writeRule(rule: PriceRule, price: Price): PriceRule {
  const { tiers: _, service_tiers: __, ...only } = rule;
  if (price.type === 'non-billing') return only;
  const multiply = (rate: PicoYuan): number => multiplyRate(rate, findFactor(price));
  if (price.type === 'times-billing') return { ...only, output: multiply(price.perCall) };
  const [{ rates }] = price.tiers;
  const written = Object.fromEntries(priceKinds.map(([name, kind]) => [name, multiply(rates[kind])]));
  return { ...only, ...written };
}

function listRuleLines(rule: PriceRule | undefined, when: string, words: ModelTexts): PriceLine[] {
  if (rule === undefined || rule.type === 'non-billing') return [{ when, rates: words.free }];
  if (rule.type === 'times-billing')
    return [{ when, rates: rule.output === 0 ? words.free : words.perCall(formatYuanPrice(rule.output)) }];
  const { tiers = [], service_tiers = {} } = rule;
  const of = when === '' ? '' : `${when}, `;
  if ([rule, ...tiers].every(isFree)) return [{ when, rates: words.free }];
  return [
    { when, rates: formatRates(rule, words) },
    ...tiers.map((tier) => ({
      when: of + words.above(tier.above),
      rates: formatRates(tier, words),
    })),
    ...Object.entries(service_tiers).map(([name, factor]) => ({
      when: of + words.tier(name),
      rates: words.times(factor),
    })),
  ];
}

const isFree = (rates: WrittenRates): boolean => priceKinds.every(([name]) => !rates[name]);

/** Names special input other than cached input where its price differs. */
function formatRates({ input, output, cached_input = input, ...rates }: WrittenRates, words: ModelTexts) {
  return {
    input: formatPerMillion(input),
    cached: formatPerMillion(cached_input),
    output: formatPerMillion(output),
    others: inputParts.flatMap(({ price: name, label }) => {
      const price = name === 'cached_input' ? undefined : rates[name];
      return price === undefined || price === input
        ? []
        : [`${words.part(label)} ${formatPerMillion(price)}`];
    }),
  };
}

/** Rows hold prices per thousand tokens. Exact, since a float would show 0.30000000000000004. */
const formatPerMillion = (perThousand: number): string => `¥${millionPrice(perThousand)}`;

/** Never in scientific notation: 0.0000015, not 1.5e-6. */
export const formatYuanPrice = (amount: number): string =>
  `¥${formatDecimal(convertToPico(amount), priceDecimals)}`;

export interface Family {
  /** Empty: all models together. */
  name: string;
  models: string[];
}

/** As many as fit on a screen. */
const ungroupedMax = 12;

/**
 * Groups models by vendor, if it is known, else by the part before a slash (`vendor/model`), else by the leading letters (`qwen2.5-max`).
 * A model without a family goes to `others`. Few models form one family, in the order of the channels.
 */
export function groupFamilies(
  models: readonly string[],
  others: string,
  facts: PageFacts['modelFacts'] = {},
): Family[] {
  if (models.length <= ungroupedMax) return [{ name: '', models: [...models] }];
  const byFamily = Map.groupBy(models, (model) =>
    Object.hasOwn(facts, model) && facts[model]?.vendor ? facts[model].vendor : familyOf(model),
  );
  const families = [...byFamily].filter(isFamily);
  const single = [...byFamily].filter((each) => !isFamily(each)).flatMap(([, members]) => members);
  if (families.length === 0 || (families.length === 1 && single.length === 0))
    return [{ name: '', models: sortNames(models) }];
  return [
    ...families
      .toSorted(([a], [b]) => compareNames(a, b))
      .map(([name, members]) => ({ name, models: sortNames(members) })),
    ...(single.length > 0 ? [{ name: others, models: sortNames(single) }] : []),
  ];
}

const isFamily = ([name, members]: [string, string[]]): boolean => name !== '' && members.length > 1;

const familyOf = (model: string): string =>
  (/^([^/]+)\//.exec(model)?.[1] ?? /^[a-z]+/i.exec(model)?.[0] ?? '').toLowerCase();

const sortNames = (models: readonly string[]): string[] => models.toSorted(compareNames);

const compareNames = (a: string, b: string): number => a.localeCompare(b, 'en', { numeric: true });

/** Shows only the day if the moment is its beginning. */
export function formatDate(
  timeMs: number,
  { timeZone, words }: Pick<PageFacts, 'timeZone' | 'words'>,
): string {
  const at = new Date(timeMs);
  const day = at.toLocaleDateString(words.locale, {
    timeZone,
    day: 'numeric',
    month: 'long',
    year: 'numeric',
  });
  const clock = at.toLocaleTimeString('en-GB', { timeZone, hour: '2-digit', minute: '2-digit' });
  return clock === '00:00' ? day : `${day}, ${clock} ${timeZone}`;
}
