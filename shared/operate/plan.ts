/**
 * The form of every action of an operator that changes something: `plan(...)` reads and says what would happen,
 * `carryOut(plan)` does it and returns what came of it. Neither prints nor asks: faces show `effect`, put `questions`
 * to a person, and render the result.
 */

/** What an action is going to do. Made by reading alone: nothing has been written yet. */
export interface Plan<Change> {
  /** The writes, as data, in their order; empty: there is nothing to do. */
  changes: Change[];
  /** What the writes bring about, in sentences for the operator. */
  effect: string[];
  /** What has to be confirmed before they are carried out; empty: nothing. */
  questions: string[];
  /** Why it must not be carried out, although it can be shown; `carryOut` fails with this. */
  refusal?: string;
}
