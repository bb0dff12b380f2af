/** What answers taught about models, shared by all environments through one item of the table `runtime`. */
import type { LearnedFact, ServedModel } from '../../../config/learned-fact.ts';

/** How old what an environment knows may be before a missing fact says nothing: it reads its facts this often. */
export const factsFreshMs = 8_000;

export interface LearnedFacts {
  /** The facts in force about a model, as last read or learned by this environment. Makes no store call. */
  of(served: ServedModel): readonly LearnedFact[];
  /** Adds a fact, or prolongs it. A fact too many is known to this environment alone. */
  learn(fact: LearnedFact): Promise<void>;
  /**
   * Whether a missing `keeps_state` means that the model needs no state: the facts were read at `sinceMs` or later, or
   * this environment saw for itself, and that or its facts were new within `factsFreshMs` before `sinceMs`: another
   * environment may have seen the model keep state since. Makes no store call.
   */
  isSettled(served: ServedModel, sinceMs: number): boolean;
  /** Notes that this environment saw for itself. */
  settle(served: ServedModel): void;
}

/** For the publisher of the configuration, which says on a channel's row what was learned. */
export interface LearnedFactsReader {
  /** All facts in force. Throws StoreUnavailable. */
  all(): Promise<LearnedFact[]>;
}
