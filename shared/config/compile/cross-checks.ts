/** Warnings that need several tables. None of them takes a row out of use. */
import { pricedModels } from '../../billing/price.ts';
import type { ChargeRow } from '../rows/charge-row.ts';
import type { PlanRow } from '../rows/plan-row.ts';
import { secretsOf } from './read-channel.ts';
import type { Snapshot } from '../snapshot.ts';
import type { ConfigTable, RowResult } from '../validation-result.ts';

type Warnings = Map<string, string[]>;
type Config = Pick<Snapshot, 'channels' | 'charges' | 'plans' | 'settings' | 'models'>;

const namesMax = 5;

/** Models that are served but named by no billing rule. */
export function unpricedModels({ models, charges }: Pick<Config, 'models' | 'charges'>): string[] {
  const priced = pricedModels(charges);
  return models.filter((model) => !priced.has(model));
}

/**
 * The warnings of rows that are used, by table and key.
 * @param unreadableSecrets references that could not be read, each with why
 */
export function crossWarnings(config: Config, unreadableSecrets: ReadonlyMap<string, string>): Warnings {
  const warnings: Warnings = new Map();
  const add = (table: ConfigTable, key: string | number, found: string[]): void => {
    if (found.length > 0) warnings.set(nameOf(table, key), found);
  };
  const unpriced = new Set(unpricedModels(config));
  for (const channel of config.channels) {
    add('channels', channel.id, [
      ...unpricedWarning(
        channel.models.filter((model) => unpriced.has(model)),
        config,
      ),
      ...secretsOf(channel).flatMap((reference) => {
        const why = unreadableSecrets.get(reference);
        return why === undefined ? [] : [`secret: ${reference} cannot be read: ${why}`];
      }),
    ]);
  }
  const pricedBy = new Map<string, number>();
  for (const charge of config.charges) {
    add('charges', charge.id, [...shadowed(charge, pricedBy), ...unservedCharge(charge, config)]);
    for (const model of charge.models) if (!pricedBy.has(model)) pricedBy.set(model, charge.id);
  }
  for (const plan of config.plans) add('plans', plan.level, unservedPlanItems(plan, config));
  return warnings;
}

/** Adds the warnings to the results. Warnings are not added to a row that already has a problem. */
export function withWarnings(results: RowResult[], warnings: Warnings): RowResult[] {
  return results.map((result) => {
    const found = warnings.get(nameOf(result.table, result.key));
    if (!found || result.problem !== undefined) return result;
    return { ...result, warning: [result.warning ?? [], found].flat(2).join('; ') };
  });
}

const nameOf = (table: ConfigTable, key: string | number): string => `${table} ${key}`;

function unpricedWarning(unpriced: string[], { settings }: Config): string[] {
  if (unpriced.length === 0) return [];
  const consequence =
    settings.unpricedModels === 'free'
      ? 'so calls are free'
      : 'so, by the setting unpriced_models, calls are refused';
  return [`models: no row of charges prices ${list(unpriced)}, ${consequence}`];
}

function shadowed({ models }: ChargeRow, pricedBy: ReadonlyMap<string, number>): string[] {
  const lower = new Map<number, string[]>();
  for (const model of new Set(models)) {
    const id = pricedBy.get(model);
    if (id !== undefined) lower.set(id, [...(lower.get(id) ?? []), model]);
  }
  return [...lower].map(
    ([id, names]) =>
      `models: rule ${id} has the lower id and already prices ${list(names)}, so that one counts`,
  );
}

function unservedCharge({ models }: ChargeRow, config: Config): string[] {
  const unserved = models.filter((model) => !config.models.includes(model));
  if (unserved.length === 0) return [];
  const publicNames = config.channels.flatMap((channel) =>
    Object.entries(channel.mapper).flatMap(([name, upstreamName]) =>
      unserved.includes(upstreamName) ? [`${upstreamName} is the upstream's name of ${name}`] : [],
    ),
  );
  const hint = publicNames.length > 0 ? ` (${list([...new Set(publicNames)])})` : '';
  return [`models: no channel that is on serves ${list(unserved)}${hint}`];
}

const unservedPlanItems = ({ items }: PlanRow, config: Config): string[] =>
  items.flatMap(({ models }, index) => {
    const unserved = models.filter((model) => !config.models.includes(model));
    return unserved.length > 0
      ? [`items[${index}].models: no channel that is on serves ${list(unserved)}`]
      : [];
  });

function list(names: string[]): string {
  const shown = names.slice(0, namesMax).join(', ');
  return names.length > namesMax ? `${shown} and ${names.length - namesMax} more` : shown;
}
