/** Port: stores and reads the secrets that channel rows name; never shows a value. */
import { Failure } from './operator-failure.ts';

export interface PutOptions {
  /** Secrets Manager instead of SSM. */
  managed: boolean;
  /** Write over the value that is there. */
  replace: boolean;
}

/** Every method throws a Failure; none of them shows a value. */
export interface SecretWriter {
  /** Stores a value. @returns the reference that rows name it by */
  put(name: string, value: string, options: PutOptions): Promise<string>;
  /** The value behind a reference. */
  read(reference: string): Promise<string>;
}

/** There is another value under this name. */
export class SecretTaken extends Failure {}
