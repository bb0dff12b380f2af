/**
 * A guard of docs/reliability.md taken away, and the tests that must notice. `test/long/removals.test.ts` takes each away
 * in a copy of the tree; `test/docs/reliability.test.ts` checks with every `npm test` that it still can.
 */
export interface Removal {
  /** The rows of the page that the guard holds, such as `F4`. */
  rows: readonly [string, ...string[]];
  /** The file of the guard, from the root. */
  file: string;
  /** The guard: text that stands in the file exactly once. */
  find: string;
  /** What is left without the guard. */
  replace: string;
  /** The test file, from the root. */
  test: string;
  /** A test that fails without the guard: its name, or the part of it that every case has. */
  name: string;
  /** The test file that runs a suite. Absent: `test`, or the test file of its name. */
  ranBy?: string;
  /** The test runs the built functions, so they are built after the removal. */
  built?: true;
}
