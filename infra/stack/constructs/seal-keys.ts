/** The numbered keys that seal the state of turns: the last seals, all open. */
import type { Construct } from 'constructs';
import { NumberedSecrets } from './numbered-secrets.ts';

export interface SealKeysProps {
  /** Ascending, at least one. */
  numbers: readonly number[];
}

export class SealKeys extends NumberedSecrets {
  /** The value of `SEAL_KEYS`: a JSON object of number to reference. */
  readonly variable: string;

  constructor(scope: Construct, id: string, { numbers }: SealKeysProps) {
    super(scope, id, {
      numbers,
      about: (number) =>
        `Seal key ${number}: seals the state of turns that clients keep and the relay stores`,
    });
    this.variable = JSON.stringify(Object.fromEntries(this.values));
  }
}
