/** Views of billing rules as the relay reads them: listed, applied to a call, and which models have none. */
import {
  computeCost,
  formatPrice,
  findPrice,
  listPricedModels,
  listProducts,
  findRule,
  startMsOf,
  findTier,
  type TokenCounts,
} from '../../billing/price.ts';
import { attributeOf } from '../../config/rows/read-row.ts';
import { needsPrice } from '../../config/snapshot.ts';
import { compileRows } from '../config/row-changes.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { usageFailure } from '../plan.ts';
import { readCharges } from '../rows.ts';

/**
 * `shadowed`: models of a rule that another one prices, now or, if the rule is not in force yet, from then on. `byId`: both begin
 * at the same time.
 */
export type ChargeList = Awaited<ReturnType<typeof listCharges>>;

export async function listCharges({ clock, tables }: OperatorPorts) {
  const { charges, problems } = readCharges(await tables.scan('charges'));
  const shadowed = charges.flatMap((rule) => {
    const atMs = Math.max(clock.now(), startMsOf(rule));
    const byRule = Map.groupBy(rule.models, (model) => findRule(charges, model, atMs) ?? rule);
    byRule.delete(rule);
    return [...byRule].map(([other, models]) => {
      const byId = startMsOf(other) === startMsOf(rule);
      return { id: rule.id, by: other.id, byId, models };
    });
  });
  return { charges, problems, shadowed };
}

/** The id after the highest. */
export const chooseNextId = (charges: readonly unknown[]): number =>
  Math.max(0, ...charges.map((row) => Number(attributeOf(row, 'id'))).filter(Number.isSafeInteger)) + 1;

export interface ExplainInput {
  model: string;
  tokens: TokenCounts;
  /** Epoch milliseconds; undefined: now. */
  atMs?: number | undefined;
}

/**
 * Explains the cost of a call, product by product. `above` is set if its tier starts above so many input tokens;
 * `products` is empty for prices that are not by tokens; `text` is as in a ledger row.
 */
export async function explainCharge(
  { clock, tables }: OperatorPorts,
  { model, tokens, atMs = clock.now() }: ExplainInput,
) {
  const { prompt_tokens: input, prompt_tokens_details: parts } = tokens;
  if (parts && Object.values(parts).reduce((sum, count) => sum + count, 0) > input)
    throw usageFailure('--input: must include the cached and cache-write tokens');
  const { charges, problems } = readCharges(await tables.scan('charges'));
  const price = findPrice(charges, model, atMs);
  const tier = price.type === 'token-billing' ? findTier(price.tiers, input) : undefined;
  return {
    atMs,
    rule: findRule(charges, model, atMs),
    price,
    above: tier?.above ?? 0,
    products: tier ? listProducts(tier, tokens) : [],
    cost: computeCost(price, tokens),
    text: formatPrice(price, tokens),
    problems,
  };
}

/** Models served without a price, which are `free` or `refused`; `unused`: priced, and served by no channel that is on. */
export type ChargeGap = Awaited<ReturnType<typeof findServiceGaps>>;

export async function findServiceGaps(ports: OperatorPorts) {
  const { snapshot } = compileRows(ports, await ports.config.tables());
  const { models, charges } = snapshot;
  const priced = listPricedModels(charges, ports.clock.now());
  const unpriced = models.filter((model) => !priced.has(model)).toSorted();
  return {
    free: unpriced.filter((model) => !needsPrice(snapshot, model)),
    refused: unpriced.filter((model) => needsPrice(snapshot, model)),
    unused: [...priced].filter((model) => !models.includes(model)).toSorted(),
  };
}
