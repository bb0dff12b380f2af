/** Port: stores and reads the secrets that channel rows name; never shows a value. */
import { Failure } from './operator-failure.ts';

export interface PutOptions {
  /** Write over the value that is there; otherwise SecretTaken is thrown. */
  replace: boolean;
}

/** Every method throws a Failure; none of them shows a value. */
export interface SecretWriter {
  /** Stores a value of this stack under the reference that rows name it by. */
  put(reference: string, value: string, options: PutOptions): Promise<void>;
  /** The value behind a reference. */
  read(reference: string): Promise<string>;
}

/** There is another value under this name. */
export class SecretTaken extends Failure {}
