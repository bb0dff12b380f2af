/**
 * Small wrong edits of the product, by what then goes wrong, and the test that notices each. `test/long/mutants.test.ts`
 * runs them; one by hand: `RELAY_MUTANT='NAME' npx vitest run FILE`, which must fail.
 */
export type Mutants = Record<string, Mutant>;

export interface Mutant {
  /** The edited file, from the root. */
  file: string;
  /** Text that stands in it exactly once. */
  find: string;
  replace: string;
  /** The test file that notices, from the root. It runs in vitest's own process, on sources. */
  noticed: string;
  /** Part of the title of a test that fails, or of a case's label, as the file writes it. */
  by: RegExp;
}
