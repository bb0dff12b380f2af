/**
 * What a call to an alias can cost, by model, and the plan entries that cover it. Loaded by the first such call. Must
 * never let a plan pay for a model that it does not cover.
 */
import { planSlots, type PlanSlot, type SlotQuery } from '../../billing/plans/plan-slots.ts';
import { callTo } from '../call/serving-channels.ts';
import { costOfModel, type BillableCall, type CallCost } from './reservation-request.ts';

/** The costs of the models after the first. */
export function laterCosts(call: BillableCall): Promise<CallCost[]> {
  const [, ...later] = call.alias?.models ?? [];
  return Promise.all(later.map(({ model }) => costOfModel(callTo(call, model))));
}

/**
 * An entry covers a call to an alias if it names the alias, or every model that may answer and is not free. An entry for
 * some of them covers none: callers can choose which one answers, by what they send.
 */
export function slotsOfAlias(
  query: Omit<SlotQuery, 'model'>,
  alias: string,
  costs: readonly CallCost[],
): PlanSlot[] {
  const keysOf = (model: string): Set<string> =>
    new Set(planSlots({ ...query, model }).map(({ key }) => key));
  const ofAlias = keysOf(alias);
  const ofModels = costs
    .filter(({ price }) => price.type !== 'non-billing')
    .map(({ model }) => keysOf(model));
  return planSlots(query).filter(({ key }) => ofAlias.has(key) || ofModels.every((keys) => keys.has(key)));
}
