/** Secrets of channels and search providers, behind the references that rows hold. */

/** `malformed`: the reference, or the value behind it, has a form that cannot be used. */
export type UnusableReason = 'missing' | 'access_denied' | 'malformed';

/** The secret cannot be used: permanent until somebody changes something. */
export class SecretUnusable extends Error {
  override readonly name = 'SecretUnusable';
  readonly reason: UnusableReason;

  /** @param detail what the reason does not say, in our own words, for the operator; never holds a value */
  constructor(reason: UnusableReason, detail = '', options?: ErrorOptions) {
    super(detail, options);
    this.reason = reason;
  }
}

export interface SecretStore {
  /**
   * The value behind a reference such as `ssm:/relay/<stack>/name` or, locally, `env:NAME`. Throws SecretUnusable, or
   * whatever kept the store from answering.
   */
  read(reference: string): Promise<string>;
  /** Reads it anew, past every cache; true when it is another value now. Never rejects. */
  refresh(reference: string): Promise<boolean>;
}

export interface SecretCheck {
  /** Which of these references cannot be used, each with why in words for the operator. Never rejects. */
  unusable(references: readonly string[]): Promise<ReadonlyMap<string, string>>;
}
