import type { BudgetText, Named } from './budgets.ts';
import { exactYuan, nano } from './exact.ts';
import {
  costOf,
  dearestInput,
  priceOf,
  servedIn,
  type ChargeText,
  type CustomerPriceText,
  type Tokens,
} from './price-list.ts';

/** A call as its client sent it. */
export interface CallAsked {
  account: string;
  key: string;
  /** The first model that may answer. */
  model: string;
  /** The other models that may answer a call to an alias. */
  others?: readonly string[];
  official: boolean;
  /** True if no balance pays. */
  metered?: boolean | undefined;
  /** True if it asks for a web search. */
  web?: boolean | undefined;
  /** The requested service tier. */
  tier?: string | undefined;
  /** Its end user and tags, and the tag budgets of its account. */
  named?: Named | undefined;
  budgets?: readonly BudgetText[] | undefined;
  /** The prices of its account, followed by those of the account's group. */
  prices?: readonly CustomerPriceText[] | undefined;
  startedMs: number;
  /** The tokens by a tokenizer, plus those that the vendor adds. */
  inputTokens: number;
}

/** The upstream's part of a call. */
export interface Delivered {
  /** True if the search provider accepted the search. */
  searched?: boolean | undefined;
  /** The model that answered, if it differs from the requested one. */
  model?: string;
  failed: boolean;
  /** True if the client received a part of the answer. */
  anyContent: boolean;
  /** True if the client left before it received any content. */
  leftEarly: boolean;
  /** The written output tokens. */
  outputTokens: number;
  /** The reported usage, if any. */
  reported: Tokens | undefined;
  /** The reported service tier. */
  tier?: string | undefined;
}

/**
 * `cancelled`: by its client, or by the relay an hour after its window. `unknown`: the response was deleted, or the
 * provider never answered again.
 */
export type WindowEnd = 'finished' | 'cancelled' | 'failed' | 'unknown';

export interface Bounds {
  least: bigint;
  most: bigint;
}

export const nothing: Bounds = { least: 0n, most: 0n };
export const exactly = (amount: bigint): Bounds => ({ least: amount, most: amount });
const plus = ({ least, most }: Bounds, amount: bigint): Bounds => ({
  least: least + amount,
  most: most + amount,
});

/** An input estimate is off by at most 16 % for usual texts, and does not know the tokens that vendors add. */
const share = 0.3;
const addedTokens = 20;

/** The lowest plausible input estimate. */
export const inputTokensLeast = ({ inputTokens }: CallAsked): number =>
  Math.max(0, Math.floor(inputTokens * (1 - share)) - addedTokens);

/** All ways in which a call can end, and the cost of each (docs/billing.md). */
export class Endings {
  readonly #list: readonly ChargeText[];
  readonly #searchPrice: bigint;

  /** @param searchPrice yuan per search */
  constructor(list: readonly ChargeText[], searchPrice: number | string = 0) {
    this.#list = list;
    this.#searchPrice = nano(exactYuan(searchPrice));
  }

  #rule({ model, startedMs, prices }: CallAsked, answered = model): ChargeText | undefined {
    return priceOf(this.#list, answered, { startedMs, prices });
  }

  /** The call counts as not made. */
  isNothing({ failed, anyContent }: Delivered): boolean {
    return failed && !anyContent;
  }

  /** The cost of a call's search, whatever happened to the call. */
  search({ searched }: Pick<Delivered, 'searched'>): bigint {
    return searched ? this.#searchPrice : 0n;
  }

  /** The amount that a call reserves for its search, and is charged for it after a crash. */
  searchOf({ web, official }: CallAsked): bigint {
    return official ? 0n : this.search({ searched: web });
  }

  /** The cost of a call without a plan and without official billing. */
  cost(asked: CallAsked, delivered: Delivered): Bounds {
    return plus(this.#modelCost(asked, delivered), this.search(delivered));
  }

  #modelCost(asked: CallAsked, delivered: Delivered): Bounds {
    const tiers = { asked: asked.tier, reported: delivered.tier };
    const rule = servedIn(this.#rule(asked, delivered.model), tiers);
    const { anyContent, leftEarly, reported, outputTokens } = delivered;
    if (this.isNothing(delivered)) return nothing;
    if (rule?.type === 'times-billing' && (!anyContent || leftEarly)) return nothing;
    if (reported) return exactly(costOf(rule, reported));
    return this.#estimated(asked, rule, outputTokens);
  }

  /**
   * The cost of a call whose function crashed: its search, and the estimated input at the price of the first model in
   * the requested tier.
   */
  expired(asked: CallAsked): Bounds {
    const rule = servedIn(this.#rule(asked), { asked: asked.tier });
    const input = rule?.type === 'token-billing' ? this.#estimated(asked, rule, 0) : nothing;
    return plus(input, this.searchOf(asked));
  }

  /** The cost of a call that waited for its provider in a background window. */
  window(asked: CallAsked, end: WindowEnd, delivered: Delivered): Bounds {
    if (end === 'unknown') return this.expired(asked);
    const isUnused = end === 'cancelled' && delivered.reported === undefined;
    return end === 'failed' || isUnused ? nothing : this.cost(asked, delivered);
  }

  #estimated(asked: CallAsked, rule: ChargeText | undefined, output: number): Bounds {
    const { inputTokens } = asked;
    const few = inputTokensLeast(asked);
    const many = Math.ceil(inputTokens * (1 + share)) + addedTokens;
    return { least: costOf(rule, { input: few, output }), most: costOf(rule, { input: many, output }) };
  }

  /** The upper error of the input estimate, which the bound leaves open. */
  leftOpen(asked: CallAsked, answered?: string): bigint {
    const held = [asked.tier, 'default'].map((reported) =>
      dearestInput(servedIn(this.#rule(asked, answered), { asked: asked.tier, reported }), asked.inputTokens),
    );
    return held.reduce((a, b) => (b > a ? b : a)) / 20n + 1n;
  }

  /** True if every model that may answer is free. */
  isFree(asked: CallAsked): boolean {
    return [asked.model, ...(asked.others ?? [])].every((model) => this.isFreeModel(asked, model));
  }

  isFreeModel(asked: CallAsked, answered?: string): boolean {
    return (this.#rule(asked, answered)?.type ?? 'non-billing') === 'non-billing';
  }
}
