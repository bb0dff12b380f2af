/** Port: stores and reads the secrets that channel rows name; never shows a value. */
import type { Failure } from './operator-failure.ts';

/** One value to store under a reference of this stack, as rows name it. */
export interface SecretWrite {
  reference: string;
  /** Write over the value that is there. */
  replace: boolean;
  /** Thrown when there is another value, which is not to be replaced. */
  conflict: Failure;
}

/** Every method throws a Failure; none of them shows a value. */
export interface SecretWriter {
  put(write: SecretWrite, value: string): Promise<void>;
  /** The value behind a reference. */
  read(reference: string): Promise<string>;
}
