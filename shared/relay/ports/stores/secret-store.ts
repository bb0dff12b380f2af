/** Secrets of channels and search providers, looked up by the references in rows. */

/** `malformed`: the reference or its value has an unusable form. */
export type UnusableReason = 'missing' | 'access_denied' | 'malformed';

/**
 * The secret cannot be used. Permanent until an operator changes the reference, the secret or a permission.
 */
export class SecretUnusable extends Error {
  override readonly name = 'SecretUnusable';
  readonly reason: UnusableReason;

  /**
   * @param detail more about the reason, for the operator; must not quote foreign text or a secret's value
   */
  constructor(reason: UnusableReason, detail = '', options?: ErrorOptions) {
    super(detail, options);
    this.reason = reason;
  }
}

export interface SecretStore {
  /**
   * The value of a reference such as `ssm:/relay/<stack>/name` or, locally, `env:NAME`. Throws
   * SecretUnusable, or the error of a store that did not answer.
   */
  read(reference: string): Promise<string>;
  /** Reads the secret again without a cache. True: the value has changed. Never rejects. */
  refresh(reference: string): Promise<boolean>;
}

export interface SecretCheck {
  /** The references that cannot be used, each with an explanation for the operator. Never rejects. */
  unusable(references: readonly string[]): Promise<ReadonlyMap<string, string>>;
}
