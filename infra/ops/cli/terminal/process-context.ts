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
