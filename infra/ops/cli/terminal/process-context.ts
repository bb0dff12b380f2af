import type { Readable, Writable } from 'node:stream';

/** What a run is given by whoever started it. */
export interface Surroundings {
  /** A person sits there when it says `isTTY`. */
  input: Readable & { isTTY?: boolean };
  output: Writable;
  errors: Writable;
  environment: NodeJS.ProcessEnv;
}

/** Those of this process, until `surround` gives others: a test runs the program without a process of its own. */
export const surroundings: Surroundings = {
  input: process.stdin,
  output: process.stdout,
  errors: process.stderr,
  environment: process.env,
};

export function surround(others: Surroundings): void {
  Object.assign(surroundings, others);
}
