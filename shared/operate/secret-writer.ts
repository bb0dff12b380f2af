/** Port: stores and reads the secrets that channel rows name; never shows a value. */
import type { Failure } from './operator-failure.ts';

/** A value to store under a reference of this stack. Rows use the same reference. */
export interface SecretWrite {
  reference: string;
  /** Overwrite an existing value. */
  replace: boolean;
  /** Thrown if a value exists and `replace` is false. */
  conflict: Failure;
}

/** Every method may throw a Failure. Its message contains no value. */
export interface SecretWriter {
  put(write: SecretWrite, value: string): Promise<void>;
  /** The value behind a reference of a row. */
  read(reference: string): Promise<string>;
  /** The value of an environment variable that the operator named. */
  variable(name: string): Promise<string>;
}
