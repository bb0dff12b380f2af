/** Warnings that depend on several tables. Rows with a warning are still used. */
import { buildPrice, findRule, startMsOf, listPricedModels } from '../billing/price.ts';
import { findOpenWindow } from '../billing/schedule.ts';
import { asRecord, compareCodeUnits, listTexts } from '../wire/json.ts';
import { isoTime } from '../wire/iso-time.ts';
import { findRowRules } from '../upstreams/called-channel.ts';
import {
  parseRuleFact,
  parseWordFact,
  type LearnedFact,
  type RuleName,
  type WrittenRules,
} from '../upstreams/quirks.ts';
import { errorMeanings, findErrorMeaning, finishMeanings, readFinish } from '../upstreams/vocabulary.ts';
import { type ChannelRow, secretsOf } from './rows/channel-row.ts';
import type { ChargeRow } from './rows/charge-row.ts';
import type { PlanRow } from './rows/plan-row.ts';
import type { AliasSettings } from './settings.ts';
import { findChargeWarnings, findCostWarnings } from './price-warnings.ts';
import { findCustomerWarnings, findLossWarnings } from './loss-warnings.ts';
import { joinNames, type ConfigTable, type RowResult } from './rows/read-table.ts';
import { needsPrice, type Snapshot } from './snapshot.ts';
import { plainRow, textOf } from './rows/read-row.ts';

type Warnings = Map<string, string[]>;
type Config = Pick<
  Snapshot,
  'channels' | 'charges' | 'plans' | 'settings' | 'models' | 'publishedAt' | 'unreadPrices'
>;

interface OtherFacts {
  /** With those that are not used. */
  aliases?: readonly AliasSettings[] | undefined;
  channels: readonly ChannelRow[];
  /** References that could not be read, each with the reason. */
  unreadableSecrets: ReadonlyMap<string, string>;
  learned: readonly LearnedFact[];
}

export function findCrossWarnings(
  config: Config,
  { unreadableSecrets, learned, aliases, channels }: OtherFacts,
): Warnings {
  const unpriced = new Set(listUnpricedModels(config));
  const planned = collectModels(channels);
  const warnings: Warnings = new Map();
  for (const channel of config.channels)
    warnings.set(formatRowName('channels', channel.id), [
      ...warnOfUnpriced(
        channel.models.filter((model) => unpriced.has(model)),
        config,
      ),
      ...secretsOf(channel)
        .filter((reference) => unreadableSecrets.has(reference))
        .map((reference) => `secret: ${reference} cannot be read: ${unreadableSecrets.get(reference)}`),
      ...findCostWarnings(channel),
      ...listLearnedWarnings(channel, learned),
      ...listWordWarnings(channel, learned),
    ]);
  for (const charge of config.charges)
    warnings.set(formatRowName('charges', charge.id), [
      ...findChargeWarnings(charge, config.channels),
      ...findLossWarnings({
        attribute: 'models',
        models: charge.models,
        priceOf: (_model, atMs) => buildPrice(charge, [], findOpenWindow(charge.windows, atMs)),
        windowsOf: () => charge.windows ?? [],
        channels: config.channels,
        nowMs: config.publishedAt * 1000,
      }),
      ...warnOfShadowing(charge, config),
      ...warnOfUnservedCharge(charge, config, planned),
    ]);
  if (aliases) {
    const offered = new Set(
      config.models.filter((model) => !unpriced.has(model) || !needsPrice(config, model)),
    );
    warnings.set(formatRowName('settings', 'aliases'), checkAliases({ aliases, channels, offered }));
  }
  const groups = Object.entries(config.settings.priceGroups ?? {}).flatMap(([name, prices]) =>
    findCustomerWarnings(`value.${name}`, { prices }, config, config.publishedAt * 1000),
  );
  warnings.set(formatRowName('settings', 'price_groups'), groups);
  for (const plan of config.plans)
    warnings.set(formatRowName('plans', plan.level), warnOfUnservedPlanItems(plan, config));
  return warnings;
}

/** A row with a problem gets no warnings. */
export function addWarnings(results: RowResult[], warnings: Warnings): RowResult[] {
  return results.map((result) => {
    const found = warnings.get(formatRowName(result.table, result.key));
    if (!found?.length || result.problem !== undefined) return result;
    return { ...result, warning: [result.warning ?? [], found].flat(2).join('; ') };
  });
}

/** Advice by the kind of a learned fact. `found` is the row's present limit. */
const lessons: Record<string, (models: string, detail: string, found: string) => string> = {
  speaks: (models, dialect) =>
    `dialect: ${models} took calls with tools only in the dialect "${dialect}"; set it here, so that calls use it at once`,
  refuses_limit: (models, limit, found) =>
    `params.max_output_tokens: ${found}, ${models} refused a limit of ${limit}; set it to the maximum of the model, so that the relay lowers limits to it`,
  limit_over_context: (models, limit, found) =>
    `params.max_output_tokens: ${found}, ${models} had no room in its context for a limit of ${limit}; set it to the context window minus the longest prompt, so that calls need no second request`,
};

/** A row that contains what was learned saves each call a repeated request. */
function listLearnedWarnings(row: ChannelRow, learned: readonly LearnedFact[]): string[] {
  const { id, models, params } = row;
  const own = learned.filter(({ channel, model }) => channel === id && models.includes(model));
  const { max_output_tokens: known } = params;
  return [...Map.groupBy(own, ({ fact }) => fact)].flatMap(([fact, facts]) => {
    const served = facts.map(({ model }) => model).toSorted(compareCodeUnits);
    const names = joinNames(served);
    const [kind = '', detail = ''] = fact.split(':');
    const rules = parseRuleFact(fact);
    if (Object.keys(rules).length > 0) return describeRuleLesson(row, served, rules);
    const isKnown = known !== undefined && Number(detail) > known;
    return isKnown ? [] : (lessons[kind]?.(names, detail, String(known ?? 'absent')) ?? []);
  });
}

/** Skips models whose rules already say so. */
function describeRuleLesson(row: ChannelRow, models: readonly string[], rules: WrittenRules): string[] {
  const [name, value] = Object.entries(rules)[0] ?? [];
  const saysSo = (model: string): boolean =>
    JSON.stringify(findRowRules(row, model)[name as RuleName]) === JSON.stringify(value);
  const asked = models.filter((model) => !saysSo(model));
  const [first] = asked;
  if (first === undefined) return [];
  const more = asked.length > 1 ? ', and the same for the others' : '';
  return [
    `params.model_rules: ${joinNames(asked)} refused calls until this held; write ${JSON.stringify({ [first]: rules })}${more}, so that ${asked.length > 1 ? 'they need' : 'it needs'} no second request`,
  ];
}

/** Skips words that the row or this version already explains. */
function listWordWarnings({ id, params: { words } }: ChannelRow, learned: readonly LearnedFact[]): string[] {
  return learned.flatMap(({ channel, fact }) => {
    const { kind, word = '', count } = parseWordFact(fact) ?? {};
    if (channel !== id || kind === undefined) return [];
    const isFinish = kind === 'finish';
    const isKnown = isFinish
      ? readFinish(word, words)?.means !== 'unknown'
      : findErrorMeaning({ code: word }, { words }) !== undefined;
    if (isKnown) return [];
    const said = isFinish ? 'ended answers' : 'refused calls';
    const line = isFinish ? { finish: { [word]: 'stop' } } : { errors: { [word]: 'caller' } };
    const others = (isFinish ? finishMeanings : errorMeanings).map((each) => `"${each}"`).join(', ');
    return [
      `params.words: the upstream ${said} with "${word}" (at least ${count} times in 7 days), which the relay does not know; add ${JSON.stringify(line)}, or replace its value by one of ${others}`,
    ];
  });
}

/** Matches the warnings above that no row explains: learned facts, and secrets that cannot be read. */
const knownToStack =
  /refused calls until this held|took calls with tools only in the dialect|which the relay does not know; add|refused a limit of \d|had no room in its context for|^secret: \S+ cannot be read: /;

/** Adds to the warning that the tools compute those that only the running stack knows, from the row's `_warning`. */
export function addStackWarnings(raw: unknown, warning: string | undefined): string | undefined {
  // A warning's text may contain `; `, but not followed by an attribute and a colon.
  const marked = textOf(raw, '_warning').split(/; (?=[\w.[\]]+: )/);
  const added = marked.filter((each) => knownToStack.test(each) && !warning?.includes(each));
  return [warning ?? [], added].flat().join('; ') || undefined;
}

export const formatRowName = (table: ConfigTable, key: string | number): string => `${table} ${key}`;

function warnOfUnpriced(unpriced: string[], config: Config): string[] {
  const byConsequence = Map.groupBy(unpriced, (model) => {
    if (config.settings.unpricedModels === 'refuse') return 'so calls are refused (setting unpriced_models)';
    return needsPrice(config, model)
      ? 'but an invalid rule names it, so calls are refused until that rule is fixed'
      : 'so calls are free';
  });
  return [...byConsequence].map(
    ([consequence, models]) => `models: no price for ${joinNames(models)}, ${consequence}`,
  );
}

/** Warns if another rule prices models of this one, now or when this one comes into force. */
function warnOfShadowing(rule: ChargeRow, { charges, publishedAt }: Config): string[] {
  const nowMs = Math.max(publishedAt * 1000, startMsOf(rule));
  const byRule = Map.groupBy(new Set(rule.models), (model) => findRule(charges, model, nowMs));
  return [...byRule].flatMap(([other, names]) => {
    if (!other || other.id === rule.id) return [];
    const why =
      startMsOf(other) > startMsOf(rule)
        ? `replaced this one at ${isoTime(startMsOf(other))}`
        : 'has a lower id and takes precedence';
    return [`models: rule ${other.id} ${why} for ${joinNames(names)}`];
  });
}

/** Models of disabled channels get no warning, because prices are written before a channel is enabled. */
function warnOfUnservedCharge({ models }: ChargeRow, config: Config, planned: ReadonlySet<string>): string[] {
  const unserved = selectUnserved(models, config).filter((model) => !planned.has(model));
  if (unserved.length === 0) return [];
  const publicNames = config.channels.flatMap((channel) =>
    Object.entries(channel.mapper).flatMap(([name, upstreamName]) =>
      unserved.includes(upstreamName) ? [`${upstreamName} is the upstream's name for ${name}`] : [],
    ),
  );
  const aliases = unserved
    .filter((model) => isAlias(model, config))
    .map((model) => `${model} is an alias: set the price of its models`);
  const hints = [...new Set(publicNames), ...aliases];
  const hint = hints.length > 0 ? ` (${joinNames(hints)})` : '';
  return [`models: no enabled channel serves ${joinNames(unserved)}${hint}`];
}

const selectUnserved = (models: string[], config: Config): string[] =>
  models.filter((model) => !config.models.includes(model));

const isAlias = (name: string, { settings }: Config): boolean =>
  settings.aliases.some((alias) => alias.name === name);

/** An entry may name an alias, and then covers every model that answers it. */
const warnOfUnservedPlanItems = ({ items }: PlanRow, config: Config): string[] =>
  items.flatMap(({ models }, index) => {
    const unserved = selectUnserved(models, config).filter((name) => !isAlias(name, config));
    return listTexts(
      unserved.length > 0 && `items[${index}].models: no enabled channel serves ${joinNames(unserved)}`,
    );
  });

/** Includes disabled channels, because an edit of a setting must not change the meaning of a channel's model. */
const collectModels = (channels: readonly ChannelRow[]): ReadonlySet<string> =>
  new Set(channels.flatMap(({ models }) => models));

export function selectUsableAliases(
  aliases: readonly AliasSettings[],
  channels: readonly ChannelRow[],
): AliasSettings[] {
  const taken = collectModels(channels);
  return aliases.filter(({ name }) => !taken.has(name));
}

interface WrittenAliases {
  aliases: readonly AliasSettings[];
  channels: readonly ChannelRow[];
  offered: ReadonlySet<string>;
}

function checkAliases({ aliases, channels, offered }: WrittenAliases): string[] {
  const taken = collectModels(channels);
  return aliases.flatMap(({ name, models }) => {
    if (taken.has(name)) return [`value.${name}: ignored, because a channel has a model of this name`];
    const missing = models.filter((model) => !offered.has(model));
    if (missing.length === models.length)
      return [`value.${name}: not offered, because no enabled channel serves any of its models`];
    return missing.map((model) => `value.${name}: skips ${model}, which no enabled channel serves`);
  });
}

// Models without a price

type Priced = Pick<Snapshot, 'models' | 'charges' | 'publishedAt'>;

export function listUnpricedModels({ models, charges, publishedAt }: Priced): string[] {
  const priced = listPricedModels(charges, publishedAt * 1000);
  return models.filter((model) => !priced.has(model));
}

/**
 * Selects the models that invalid rows of `charges` name. Somebody meant to price them, so they must not be free. A row that names
 * nothing readable counts for all models.
 */
export const findNamedModels = (rows: readonly unknown[], models: readonly string[]): string[] => {
  const words = rows.flatMap(collectNames);
  return models.filter((model) => words.some((word) => isNamed(model.toLowerCase(), word)));
};

/** If `models` is missing or empty, another attribute may have the names, such as `model`. */
function collectNames(raw: unknown): string[] {
  const row = asRecord(plainRow(raw));
  const { models = [] } = row;
  const isEmpty = Array.isArray(models) && models.length === 0;
  const words = collectWords(isEmpty ? row : models);
  return words.length > 0 || isEmpty ? words : ['*'];
}

function collectWords(value: unknown): string[] {
  if (typeof value === 'string') return value.toLowerCase().match(/[\w.:/@*-]+/g) ?? [];
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return [];
  return (Array.isArray(value) ? value : Object.entries(value).flat()).flatMap(collectWords);
}

/** Rules cannot have patterns, but an author who writes one means all models that begin so. */
const isNamed = (model: string, word: string): boolean =>
  word.includes('*') ? model.startsWith(word.slice(0, word.indexOf('*')).replace(/\.$/, '')) : model === word;
