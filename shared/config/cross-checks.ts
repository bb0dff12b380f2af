/** Warnings that depend on several tables. A row with such a warning is still used. */
import { findRule, startMsOf, listPricedModels } from '../billing/price.ts';
import { asRecord, compareCodeUnits } from '../wire/json.ts';
import { isoTime } from '../wire/iso-time.ts';
import { findRowRules } from '../upstreams/called-channel.ts';
import { parseRuleFact, type LearnedFact, type RuleName, type WrittenRules } from '../upstreams/quirks.ts';
import { type ChannelRow, secretsOf } from './rows/channel-row.ts';
import type { ChargeRow } from './rows/charge-row.ts';
import type { PlanRow } from './rows/plan-row.ts';
import type { AliasSettings } from './settings.ts';
import { findChargeWarnings, findCostWarnings } from './price-marks.ts';
import { joinNames, type ConfigTable, type RowResult } from './rows/read-table.ts';
import { needsPrice, type Snapshot } from './snapshot.ts';
import { plainRow, textOf } from './rows/read-row.ts';

type Warnings = Map<string, string[]>;
type Config = Pick<
  Snapshot,
  'channels' | 'charges' | 'plans' | 'settings' | 'models' | 'publishedAt' | 'unreadPrices'
>;

/** What is known beside the configuration that requests are served with. */
interface KnownBeside {
  /** As written, with those that are not used. Absent: none. */
  aliases?: readonly AliasSettings[] | undefined;
  channels: readonly ChannelRow[];
  /** References that could not be read, each with the reason. */
  unreadableSecrets: ReadonlyMap<string, string>;
  learned: readonly LearnedFact[];
}

/** The warnings of rows that are used, by table and key. */
export function findCrossWarnings(
  config: Config,
  { unreadableSecrets, learned, aliases, channels }: KnownBeside,
): Warnings {
  const unpriced = new Set(listUnpricedModels(config));
  const warnings: Warnings = new Map();
  for (const channel of config.channels)
    warnings.set(nameOf('channels', channel.id), [
      ...unpricedWarning(
        channel.models.filter((model) => unpriced.has(model)),
        config,
      ),
      ...secretsOf(channel)
        .filter((reference) => unreadableSecrets.has(reference))
        .map((reference) => `secret: ${reference} cannot be read: ${unreadableSecrets.get(reference)}`),
      ...findCostWarnings(channel),
      ...learnedWarnings(channel, learned),
    ]);
  for (const charge of config.charges)
    warnings.set(nameOf('charges', charge.id), [
      ...findChargeWarnings(charge, config.channels),
      ...shadowed(charge, config),
      ...unservedCharge(charge, { ...config, channelsOffToo: channels }),
    ]);
  if (aliases) {
    const offered = new Set(
      config.models.filter((model) => !unpriced.has(model) || !needsPrice(config, model)),
    );
    warnings.set(nameOf('settings', 'aliases'), aliasWarnings({ aliases, channels, offered }));
  }
  for (const plan of config.plans) warnings.set(nameOf('plans', plan.level), unservedPlanItems(plan, config));
  return warnings;
}

/** Adds the warnings to the results. Warnings are not added to a row that already has a problem. */
export function addWarnings(results: RowResult[], warnings: Warnings): RowResult[] {
  return results.map((result) => {
    const found = warnings.get(nameOf(result.table, result.key));
    if (!found?.length || result.problem !== undefined) return result;
    return { ...result, warning: [result.warning ?? [], found].flat(2).join('; ') };
  });
}

/** What an operator is told by the kind of a fact. `found`: the row's limit as it is. */
const lessons: Record<string, (models: string, detail: string, found: string) => string> = {
  speaks: (models, dialect) =>
    `dialect: ${models} took calls with tools only in the dialect "${dialect}"; name it here, so that calls use it at once`,
  refuses_limit: (models, limit, found) =>
    `params.max_output_tokens: ${found}, ${models} refused a limit of ${limit}; set it to the maximum of the model, so that the relay lowers limits to it`,
  limit_over_context: (models, limit, found) =>
    `params.max_output_tokens: ${found}, ${models} had no room in its context for a limit of ${limit}; set it to the context window minus the longest prompt, so that calls need no second request`,
};

/** Repeats cost each call a request; a row that says what was learned saves it. */
function learnedWarnings(row: ChannelRow, learned: readonly LearnedFact[]): string[] {
  const { id, models, params } = row;
  const own = learned.filter(({ channel, model }) => channel === id && models.includes(model));
  const { max_output_tokens: known } = params;
  return [...Map.groupBy(own, ({ fact }) => fact)].flatMap(([fact, facts]) => {
    const served = facts.map(({ model }) => model).toSorted(compareCodeUnits);
    const names = joinNames(served);
    const [kind = '', detail = ''] = fact.split(':');
    const rules = parseRuleFact(fact);
    if (Object.keys(rules).length > 0) return ruleLesson(row, served, rules);
    const isKnown = known !== undefined && Number(detail) > known;
    return isKnown ? [] : (lessons[kind]?.(names, detail, String(known ?? 'absent')) ?? []);
  });
}

/** Nothing of the models of which the row says so by now. */
function ruleLesson(row: ChannelRow, models: readonly string[], rules: WrittenRules): string[] {
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

/** In warnings that follow from no row: what refusals taught, and secrets that cannot be read. The words are those above. */
const knownToStack =
  /refused calls until this held|took calls with tools only in the dialect|refused a limit of \d|had no room in its context for|^secret: \S+ cannot be read: /;

/** The warning of a row as the tools compute it, and what the running stack alone knows, which its mark says. */
export function addStackWarnings(raw: unknown, warning: string | undefined): string | undefined {
  // The text of a warning may have `; ` itself, but no attribute and colon behind it.
  const marked = textOf(raw, '_warning').split(/; (?=[\w.[\]]+: )/);
  const added = marked.filter((each) => knownToStack.test(each) && !warning?.includes(each));
  return [warning ?? [], added].flat().join('; ') || undefined;
}

export const nameOf = (table: ConfigTable, key: string | number): string => `${table} ${key}`;

function unpricedWarning(unpriced: string[], config: Config): string[] {
  const byConsequence = Map.groupBy(unpriced, (model) => {
    if (config.settings.unpricedModels === 'refuse') return 'so calls are rejected (setting unpriced_models)';
    return needsPrice(config, model)
      ? 'but an invalid rule names it, so calls are rejected until that rule is fixed'
      : 'so calls are free';
  });
  return [...byConsequence].map(
    ([consequence, models]) => `models: no price for ${joinNames(models)}, ${consequence}`,
  );
}

/** Whether another rule prices models of this one now, and, if this one is not in force yet, from then on. */
function shadowed(rule: ChargeRow, { charges, publishedAt }: Config): string[] {
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

/** A channel that is off may be about to be switched on: its prices are written before that. */
function unservedCharge(
  { models }: ChargeRow,
  { channelsOffToo, ...config }: Config & { channelsOffToo: readonly ChannelRow[] },
): string[] {
  const planned = namesOf(channelsOffToo);
  const unserved = unservedOf(models, config).filter((model) => !planned.has(model));
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

const unservedOf = (models: string[], config: Config): string[] =>
  models.filter((model) => !config.models.includes(model));

const isAlias = (name: string, { settings }: Config): boolean =>
  settings.aliases.some((alias) => alias.name === name);

/** An entry may name an alias, and covers it then whichever model answers. */
const unservedPlanItems = ({ items }: PlanRow, config: Config): string[] =>
  items.flatMap(({ models }, index) => {
    const unserved = unservedOf(models, config).filter((name) => !isAlias(name, config));
    return unserved.length > 0
      ? [`items[${index}].models: no enabled channel serves ${joinNames(unserved)}`]
      : [];
  });

/** The names that rows of channels have, on or off. What such a name means must not change by an edit of a setting. */
const namesOf = (channels: readonly ChannelRow[]): ReadonlySet<string> =>
  new Set(channels.flatMap(({ models }) => models));

export function selectUsableAliases(
  aliases: readonly AliasSettings[],
  channels: readonly ChannelRow[],
): AliasSettings[] {
  const taken = namesOf(channels);
  return aliases.filter(({ name }) => !taken.has(name));
}

interface WrittenAliases {
  aliases: readonly AliasSettings[];
  channels: readonly ChannelRow[];
  offered: ReadonlySet<string>;
}

function aliasWarnings({ aliases, channels, offered }: WrittenAliases): string[] {
  const taken = namesOf(channels);
  return aliases.flatMap(({ name, models }) => {
    if (taken.has(name)) return [`value.${name}: ignored, because a channel has a model of this name`];
    const missing = models.filter((model) => !offered.has(model));
    if (missing.length === models.length)
      return [`value.${name}: not offered, because no enabled channel serves any of its models`];
    return missing.map((model) => `value.${name}: skips ${model}, which no enabled channel serves`);
  });
}

// Models without a price: those that no rule names, and those that a rule names which cannot be read.

type Priced = Pick<Snapshot, 'models' | 'charges' | 'publishedAt'>;

/** Models that channels serve but no billing rule in force names. */
export function listUnpricedModels({ models, charges, publishedAt }: Priced): string[] {
  const priced = listPricedModels(charges, publishedAt * 1000);
  return models.filter((model) => !priced.has(model));
}

/**
 * Of the models those that unreadable rows of `charges` name, as far as can be told. Somebody meant to price them, so they
 * must not be free while no rule does. What cannot be told counts for all models.
 */
export const findNamedModels = (rows: readonly unknown[], models: readonly string[]): string[] => {
  const words = rows.flatMap(namesIn);
  return models.filter((model) => words.some((word) => isNamed(model.toLowerCase(), word)));
};

/** Of `models`; of the whole row where that is absent or empty, since another attribute may have them, such as `model`. */
function namesIn(raw: unknown): string[] {
  const row = asRecord(plainRow(raw));
  const { models = [] } = row;
  const isEmpty = Array.isArray(models) && models.length === 0;
  const words = wordsIn(isEmpty ? row : models);
  return words.length > 0 || isEmpty ? words : ['*'];
}

/** All that looks like a name, in small letters, at any depth. */
function wordsIn(value: unknown): string[] {
  if (typeof value === 'string') return value.toLowerCase().match(/[\w.:/@*-]+/g) ?? [];
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return [];
  return (Array.isArray(value) ? value : Object.entries(value).flat()).flatMap(wordsIn);
}

/** No rule may name models by a pattern; who writes one means all that begin so. */
const isNamed = (model: string, word: string): boolean =>
  word.includes('*') ? model.startsWith(word.slice(0, word.indexOf('*')).replace(/\.$/, '')) : model === word;
