/** Computes what a call would cost by the rows of `charges`, product by product, as the relay does. */
import type { NanoYuan } from '../../billing/amount.ts';
import {
  costOf,
  formatPrice,
  productsOf,
  tierFor,
  type Price,
  type Product,
  type TokenCounts,
} from '../../billing/price.ts';
import { priceOf, ruleOf } from '../../billing/price-rule.ts';
import type { ChargeRow } from '../../config/rows/charge-row.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { readCharges } from './list-charges.ts';

export interface ExplainInput {
  model: string;
  tokens: TokenCounts;
  /** Epoch milliseconds; undefined: now. */
  atMs?: number | undefined;
}

export interface ChargeExplanation {
  atMs: number;
  /** Undefined: no rule in force names the model. */
  rule: ChargeRow | undefined;
  price: Price;
  /** The tier of the call: it holds for more input tokens than this. */
  above: number;
  /** Empty: the price is not by tokens. */
  products: Product[];
  cost: NanoYuan;
  /** The price as a ledger row would have it. */
  text: string;
  /** Sentences about rows that cannot be read, which price nothing. */
  problems: string[];
}

export async function explainCharge(
  { clock, tables }: Pick<OperatorPorts, 'clock' | 'tables'>,
  { model, tokens, atMs = clock.now() }: ExplainInput,
): Promise<ChargeExplanation> {
  const { prompt_tokens: input, prompt_tokens_details: parts } = tokens;
  if (parts && Object.values(parts).reduce((sum, count) => sum + count, 0) > input)
    throw usageFailure('--input is all input: what is cached and written is a part of it, never more');
  const { charges, problems } = readCharges(await tables.scan('charges'));
  const price = priceOf(charges, model, atMs);
  const tier = price.type === 'token-billing' ? tierFor(price.tiers, input) : undefined;
  return {
    atMs,
    rule: ruleOf(charges, model, atMs),
    price,
    above: tier?.above ?? 0,
    products: tier ? productsOf(tier, tokens) : [],
    cost: costOf(price, tokens),
    text: formatPrice(price, tokens),
    problems,
  };
}
