/** Views of billing rules as the relay reads them: listed, applied to a call, and which models have none. */
import {
  buildPrice,
  computeCost,
  formatPrice,
  listPricedModels,
  listProducts,
  findRule,
  startMsOf,
  findTier,
  type TokenCounts,
} from '../../billing/price.ts';
import { findOpenWindow } from '../../billing/schedule.ts';
import { listCustomerTerms } from '../../config/customer-prices.ts';
import { AccountRow } from '../../config/rows/account-row.ts';
import { attributeOf, readRow } from '../../config/rows/read-row.ts';
import { needsPrice } from '../../config/snapshot.ts';
import { compareCodeUnits } from '../../wire/json.ts';
import { compileRows, compileSettings } from '../config/row-changes.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { usageFailure } from '../plan.ts';
import { findAccount, readCharges } from '../rows.ts';

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

export const chooseNextId = (charges: readonly unknown[]): number =>
  Math.max(0, ...charges.map((row) => Number(attributeOf(row, 'id'))).filter(Number.isSafeInteger)) + 1;

export interface ExplainInput {
  model: string;
  tokens: TokenCounts;
  /** Epoch milliseconds; undefined: now. */
  atMs?: number | undefined;
  /** The customer who pays. Default: the price of everybody. */
  account?: string | undefined;
}

/**
 * Explains the cost of a call, product by product. `above` is set if its tier starts above so many input tokens;
 * `products` is empty for prices that are not by tokens; `text` is as in a ledger row.
 */
export async function explainCharge(
  ports: OperatorPorts,
  { model, tokens, account, atMs = ports.clock.now() }: ExplainInput,
) {
  const { prompt_tokens: input, prompt_tokens_details: parts } = tokens;
  if (parts && Object.values(parts).reduce((sum, count) => sum + count, 0) > input)
    throw usageFailure('--input: must include the cached and cache-write tokens');
  const { charges, problems } = readCharges(await ports.tables.scan('charges'));
  const rule = findRule(charges, model, atMs);
  const own = await readTerms(ports, { model, account, atMs });
  const open = findOpenWindow(rule?.windows, atMs);
  const terms = [...(open ? [{ ...open, source: `window ${open.name}`, type: rule?.type }] : []), ...own];
  const price = buildPrice(rule, own, open);
  const tier = price.type === 'token-billing' ? findTier(price.tiers, input) : undefined;
  return {
    atMs,
    rule,
    price,
    /** The price of the rule alone, then what changes it. */
    base: buildPrice(rule),
    terms: terms.map(({ source, factor }, at) => ({
      source,
      factor,
      price: buildPrice(rule, terms.slice(at, at + 1)),
    })),
    above: tier?.above ?? 0,
    products: tier ? listProducts(tier, tokens) : [],
    cost: computeCost(price, tokens),
    text: formatPrice(price, tokens),
    problems,
  };
}

/** Throws a usage failure if the account is unknown or its row is invalid. */
async function readTerms(
  ports: OperatorPorts,
  { model, account, atMs }: Pick<ExplainInput, 'model' | 'account'> & { atMs: number },
) {
  if (account === undefined) return [];
  const { row } = await findAccount(ports, account);
  const reading = readRow(AccountRow, row);
  if ('problem' in reading) throw usageFailure(`the row of ${account} is invalid: ${reading.problem}`);
  const { settings } = await compileSettings(ports);
  return listCustomerTerms(settings, reading.row, model, atMs);
}

/**
 * Models served without a price, which are `free` or `refused`; `unused`: priced, and served by no channel that is on; `groups`: prices
 * of customers that take the place of the rules'.
 */
export type ChargeGap = Awaited<ReturnType<typeof findServiceGaps>>;

export async function findServiceGaps(ports: OperatorPorts) {
  const { snapshot } = compileRows(ports, await ports.config.tables());
  const { models, charges, settings } = snapshot;
  const priced = listPricedModels(charges, ports.clock.now());
  const unpriced = models.filter((model) => !priced.has(model)).toSorted();
  return {
    free: unpriced.filter((model) => !needsPrice(snapshot, model)),
    refused: unpriced.filter((model) => needsPrice(snapshot, model)),
    unused: [...priced].filter((model) => !models.includes(model)).toSorted(),
    // The store returns members of maps in any order.
    groups: Object.entries(settings.priceGroups ?? {})
      .toSorted(([a], [b]) => compareCodeUnits(a, b))
      .flatMap(([group, prices]) => prices.map((price) => Object.assign({ group }, price))),
  };
}
