/** What a run of the operators' tool is given by whoever started it: a process, or a test. Handed down, never global. */
import type { Readable, Writable } from 'node:stream';

export interface ProcessContext {
  /** `isTTY` says that a person sits there. */
  input: Readable & { isTTY?: boolean };
  /** Results. */
  output: Writable;
  /** Remarks, questions and failures. */
  errors: Writable;
  environment: NodeJS.ProcessEnv;
}

// Until every command takes its context as an argument: what follows goes with the last user of `surroundings`.
export const surroundings: ProcessContext = {
  input: process.stdin,
  output: process.stdout,
  errors: process.stderr,
  environment: process.env,
};

export function surround(others: ProcessContext): void {
  Object.assign(surroundings, others);
}
