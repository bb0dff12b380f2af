import { planSlots, type PlanSlot, type SlotQuery } from './plan-slots.ts';

/**
 * The slots that cover a call to an alias: those of entries that name the alias, or every model that may answer and has a
 * price. An entry for some of them covers none, because callers can choose which one answers, by what they send.
 */
export function slotsOfAlias(
  query: Omit<SlotQuery, 'model'>,
  alias: string,
  pricedModels: readonly string[],
): PlanSlot[] {
  const keysOf = (model: string): ReadonlySet<string> =>
    new Set(planSlots({ ...query, model }).map(({ key }) => key));
  const ofAlias = keysOf(alias);
  const ofModels = pricedModels.map(keysOf);
  return planSlots(query).filter(({ key }) => ofAlias.has(key) || ofModels.every((keys) => keys.has(key)));
}
