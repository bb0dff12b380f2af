/** Streams and environment of a run, from the process or a test. Passed as an argument, never global. */
import type { Readable, Writable } from 'node:stream';

export interface ProcessContext {
  /** `isTTY`: a person uses the terminal. */
  input: Readable & { isTTY?: boolean };
  /** Results. */
  output: Writable;
  /** Remarks, questions and failures. */
  errors: Writable;
  environment: NodeJS.ProcessEnv;
}
