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

/** A call as its client made it. */
export interface CallAsked {
  account: string;
  key: string;
  /** The first one that may answer. */
  model: string;
  /** A call to an alias: the others that may. */
  others?: readonly string[];
  official: boolean;
  /** No balance pays. */
  metered?: boolean | undefined;
  /** It asks for a web search. */
  web?: boolean | undefined;
  /** The service tier that it asks for. */
  tier?: string | undefined;
  /** Whom it is for, and the budgets by tag of its account. */
  named?: Named | undefined;
  budgets?: readonly BudgetText[] | undefined;
  /** The prices of its account, then those of the account's group. */
  prices?: readonly CustomerPriceText[] | undefined;
  startedMs: number;
  /** As a tokenizer counts them, with what the vendor adds. */
  inputTokens: number;
}

/** What the upstream did. */
export interface Delivered {
  /** The search provider took the search of the call. */
  searched?: boolean | undefined;
  /** The model that answered. Absent: the one that was asked for. */
  model?: string;
  failed: boolean;
  /** The client got some of the answer. */
  anyContent: boolean;
  /** The client left before that. */
  leftEarly: boolean;
  /** What it wrote. */
  outputTokens: number;
  /** What it said of that; undefined: nothing. */
  reported: Tokens | undefined;
  /** The service tier that it says it used. */
  tier?: string | undefined;
}

/** `cancelled`: by its client, or by the relay an hour after its window. `unknown`: it was deleted, or the provider never answered again. */
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

/** An estimate of the input is 16 % off at most, on texts of usual kinds, and knows nothing of what vendors add. */
const share = 0.3;
const addedTokens = 20;

/** The fewest tokens that an estimate of the input may have. */
export const inputTokensLeast = ({ inputTokens }: CallAsked): number =>
  Math.max(0, Math.floor(inputTokens * (1 - share)) - addedTokens);

/** The ways in which a call can end, and what each costs (docs/billing.md). */
export class Endings {
  readonly #list: readonly ChargeText[];
  readonly #searchPrice: bigint;

  /** @param searchPrice yuan for each search */
  constructor(list: readonly ChargeText[], searchPrice: number | string = 0) {
    this.#list = list;
    this.#searchPrice = nano(exactYuan(searchPrice));
  }

  #rule({ model, startedMs, prices }: CallAsked, answered = model): ChargeText | undefined {
    return priceOf(this.#list, answered, { startedMs, prices });
  }

  /** The call is treated as not made. */
  isNothing({ failed, anyContent }: Delivered): boolean {
    return failed && !anyContent;
  }

  /** What the search of a call costs, whatever became of the call. */
  search({ searched }: Pick<Delivered, 'searched'>): bigint {
    return searched ? this.#searchPrice : 0n;
  }

  /** What a call holds for its search, and what it is charged for it after a crash. */
  searchOf({ web, official }: CallAsked): bigint {
    return official ? 0n : this.search({ searched: web });
  }

  /** What a call would cost that no plan pays and that is not official. */
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
   * What a call costs whose function crashed: its search, and the input's estimate, at the price of the first model in the tier
   * asked for.
   */
  expired(asked: CallAsked): Bounds {
    const rule = servedIn(this.#rule(asked), { asked: asked.tier });
    const input = rule?.type === 'token-billing' ? this.#estimated(asked, rule, 0) : nothing;
    return plus(input, this.searchOf(asked));
  }

  /** What a call costs that waited for its provider in a background window. */
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

  /** The error of the input's estimate from above, which the bound leaves open. */
  leftOpen(asked: CallAsked, answered?: string): bigint {
    const held = [asked.tier, 'default'].map((reported) =>
      dearestInput(servedIn(this.#rule(asked, answered), { asked: asked.tier, reported }), asked.inputTokens),
    );
    return held.reduce((a, b) => (b > a ? b : a)) / 20n + 1n;
  }

  /** Whichever model answers. */
  isFree(asked: CallAsked): boolean {
    return [asked.model, ...(asked.others ?? [])].every((model) => this.isFreeModel(asked, model));
  }

  isFreeModel(asked: CallAsked, answered?: string): boolean {
    return (this.#rule(asked, answered)?.type ?? 'non-billing') === 'non-billing';
  }
}
