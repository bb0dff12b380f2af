/** There is no such secret, or this function may not read it: certain until somebody changes something. */
export class SecretMissing extends Error {
  override readonly name: string = 'SecretMissing';
}

export interface SecretStore {
  /** Throws SecretMissing, or whatever kept the store from answering. The value behind a reference such as `ssm:/relay/<stack>/name` or, locally, `env:NAME`. */
  read(reference: string): Promise<string>;
  /** Reads it anew, past every cache; true when it is another value now. Never rejects. */
  refresh(reference: string): Promise<boolean>;
}
