/**
 * Every operators' action that writes has two functions. `plan(...)` reads and returns a `Plan`;
 * `carryOut(plan)` writes and returns the result. Neither prints or asks: faces show `effect`, ask
 * `questions` and print the result.
 */

/** What an action will do. Making a plan writes nothing. */
export interface Plan<Change> {
  /** The writes, in order, as data; empty: nothing to do. */
  changes: Change[];
  /** The effect of the writes, in sentences for the operator. */
  effect: string[];
  /** Questions to confirm before the writes; empty: no confirmation is needed. */
  questions: string[];
  /** What deserves attention about the result; it needs no answer. */
  warnings?: string[];
  /** Why the plan may be shown but not carried out. `carryOut` throws a Failure with this message. */
  refusal?: string;
}
