/** Warnings that depend on several tables. A row with such a warning is still used. */
import { ruleOf, sinceMs } from '../../billing/price-rule.ts';
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import { isoTime } from '../../wire/iso-time.ts';
import type { LearnedFact } from '../learned-fact.ts';
import type { ChannelRow } from '../rows/channel-row.ts';
import type { ChargeRow } from '../rows/charge-row.ts';
import type { PlanRow } from '../rows/plan-row.ts';
import type { AliasSettings } from '../settings/settings.ts';
import { aliasWarnings } from './alias-checks.ts';
import { chargeDoubts, costDoubts } from '../marks/price-warnings.ts';
import { namesShown } from '../marks/names-shown.ts';
import { secretsOf } from './read-channel.ts';
import { needsPrice, type Snapshot } from '../snapshot.ts';
import { unpricedModels } from './unpriced-models.ts';
import type { ConfigTable, RowResult } from '../validation-result.ts';

type Warnings = Map<string, string[]>;
type Config = Pick<
  Snapshot,
  'channels' | 'charges' | 'plans' | 'settings' | 'models' | 'publishedAt' | 'unreadPrices'
>;

/** What is known beside the configuration that requests are served with. */
export interface KnownBeside {
  /** As written, with those that are not used. Absent: none. */
  aliases?: readonly AliasSettings[] | undefined;
  /** On and off. */
  channels: readonly ChannelRow[];
  /** References that could not be read, each with the reason. */
  unreadableSecrets: ReadonlyMap<string, string>;
  learned: readonly LearnedFact[];
}

/** The warnings of rows that are used, by table and key. */
export function crossWarnings(
  config: Config,
  { unreadableSecrets, learned, aliases, channels }: KnownBeside,
): Warnings {
  const unpriced = new Set(unpricedModels(config));
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
      ...costDoubts(channel),
      ...learnedWarnings(channel, learned),
    ]);
  for (const charge of config.charges)
    warnings.set(nameOf('charges', charge.id), [
      ...chargeDoubts(charge, config.channels),
      ...shadowed(charge, config),
      ...unservedCharge(charge, config),
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
export function withWarnings(results: RowResult[], warnings: Warnings): RowResult[] {
  return results.map((result) => {
    const found = warnings.get(nameOf(result.table, result.key));
    if (!found?.length || result.problem !== undefined) return result;
    return { ...result, warning: [result.warning ?? [], found].flat(2).join('; ') };
  });
}

/** Repeats cost each call a request; a row that says what was learned saves it. */
function learnedWarnings({ id, models, params }: ChannelRow, learned: readonly LearnedFact[]): string[] {
  const own = learned.filter(({ channel, model }) => channel === id && models.includes(model));
  const byFact = Map.groupBy(own, ({ fact }) => fact);
  const known = params.max_output_tokens ?? Infinity;
  return [...byFact].flatMap(([fact, facts]) => {
    const names = namesShown(facts.map(({ model }) => model).toSorted(compareCodeUnits));
    const [kind, detail] = fact.split(':');
    if (kind === 'speaks')
      return [
        `dialect: ${names} took calls with tools only in the dialect "${detail}"; name it here, so that they are asked in it at once`,
      ];
    if (kind === 'wants_back')
      return [
        `params.wants_back: ${names} refused tool loops until "${detail}" was given back; name it here, so that they are not asked twice`,
      ];
    if (kind === 'efforts')
      return [
        `params.efforts: ${names} knows ${detail?.replaceAll('+', ', ')} alone; list them here, so that it is not asked twice`,
      ];
    if (Number(detail) > known) return [];
    const found = `params.max_output_tokens: ${Number.isFinite(known) ? known : 'absent'}`;
    if (kind === 'refuses_limit')
      return [
        `${found}, ${names} refused a limit of ${detail}; set it to the maximum of the model, so that limits are lowered to it`,
      ];
    if (kind === 'limit_over_context')
      return [
        `${found}, ${names} had no room in its context for a limit of ${detail}; set it to what the context leaves beside prompts, so that calls are not asked twice`,
      ];
    return [];
  });
}

export const nameOf = (table: ConfigTable, key: string | number): string => `${table} ${key}`;

function unpricedWarning(unpriced: string[], config: Config): string[] {
  const byConsequence = Map.groupBy(unpriced, (model) => {
    if (config.settings.unpricedModels === 'refuse')
      return 'so, by the setting unpriced_models, calls are refused';
    return needsPrice(config, model)
      ? 'but one that cannot be read names it, so calls are refused until that row is mended'
      : 'so calls are free';
  });
  return [...byConsequence].map(
    ([consequence, models]) => `models: no row of charges prices ${namesShown(models)}, ${consequence}`,
  );
}

/** Whether another rule prices models of this one now, and, if this one is not in force yet, from then on. */
function shadowed(rule: ChargeRow, { charges, publishedAt }: Config): string[] {
  const nowMs = Math.max(publishedAt * 1000, sinceMs(rule));
  const byRule = Map.groupBy(new Set(rule.models), (model) => ruleOf(charges, model, nowMs));
  return [...byRule].flatMap(([other, names]) => {
    if (!other || other.id === rule.id) return [];
    const why =
      sinceMs(other) > sinceMs(rule)
        ? `is in force since ${isoTime(sinceMs(other))} and prices`
        : 'has the lower id and already prices';
    return [`models: rule ${other.id} ${why} ${namesShown(names)}, so that one counts`];
  });
}

function unservedCharge({ models }: ChargeRow, config: Config): string[] {
  const unserved = unservedOf(models, config);
  if (unserved.length === 0) return [];
  const publicNames = config.channels.flatMap((channel) =>
    Object.entries(channel.mapper).flatMap(([name, upstreamName]) =>
      unserved.includes(upstreamName) ? [`${upstreamName} is the upstream's name of ${name}`] : [],
    ),
  );
  const aliases = unserved
    .filter((model) => isAlias(model, config))
    .map((model) => `${model} is an alias: the model that answers has its price`);
  const hints = [...new Set(publicNames), ...aliases];
  const hint = hints.length > 0 ? ` (${namesShown(hints)})` : '';
  return [`models: no channel that is on serves ${namesShown(unserved)}${hint}`];
}

const unservedOf = (models: string[], config: Config): string[] =>
  models.filter((model) => !config.models.includes(model));

const isAlias = (name: string, { settings }: Config): boolean =>
  settings.aliases?.some((alias) => alias.name === name) === true;

/** An entry may name an alias, and covers it then whichever model answers. */
const unservedPlanItems = ({ items }: PlanRow, config: Config): string[] =>
  items.flatMap(({ models }, index) => {
    const unserved = unservedOf(models, config).filter((name) => !isAlias(name, config));
    return unserved.length > 0
      ? [`items[${index}].models: no channel that is on serves ${namesShown(unserved)}`]
      : [];
  });
