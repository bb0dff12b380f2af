/**
 * The terms of a web search: what it adds to the prompt, what it costs the operator, and which calls may make one. The price that
 * the customer pays is in the call's tariff.
 */
import { parseYuan, type NanoYuan } from '../../billing/price.ts';
import { computeReserveAmount, type ModelCost } from '../../billing/reservation.ts';
import type { ChatCall } from '../call/call.ts';
import { refuse } from '../http/refusal.ts';

type SearchingCall = Pick<ChatCall, 'model' | 'alias' | 'snapshot'>;

/** The most prompt tokens that a search adds, estimated from above: reserved in addition to those of the request. */
export const searchTokensMax = 4_000;

/** Searches of a key in a minute while customers pay nothing for them: at Tavily's $0.008 each, $0.24 a minute at most. */
const freeSearchesOfMinute = 30;

/** Searches that the call's key may make in a minute, if limited. */
export function searchRpmOf({ model, snapshot: { settings } }: SearchingCall): number | undefined {
  const { search } = settings;
  if (!model.web || !search) return undefined;
  return search.perMinute ?? (search.price ? undefined : freeSearchesOfMinute);
}

/** The operator's cost of a search. */
export const searchCostOf = ({ snapshot: { settings } }: SearchingCall): NanoYuan =>
  parseYuan(settings.search?.cost ?? 0) ?? 0n;

/**
 * Throws a Refusal of a call that would pay neither for its search nor for its model: anybody with a key could spend the operator's
 * searches. Official calls pay for nothing, but need a permission.
 */
export function checkSearchIsPaid(
  { model, alias, snapshot: { settings } }: SearchingCall,
  costs: readonly ModelCost[],
): void {
  const { search } = settings;
  if (!model.web || model.official || !search || search.price !== undefined) return;
  if (costs.every(({ price, estimate }) => computeReserveAmount(price, estimate) > 0n)) return;
  throw refuse(
    'model_not_allowed',
    `Web search is only for models that have a price. Use "${alias?.name ?? model.base}" without the prefix "web-".`,
    { param: 'model', reason: 'search_unpaid' },
  );
}
