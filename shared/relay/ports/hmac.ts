/** Signatures with a shared secret: HMAC with SHA-256, in small hex digits. */

export interface Hmac {
  sign(secret: string, message: string | Uint8Array): string;
  /** Whether one of the signatures is right. Takes the same time for every wrong one. */
  matches(secret: string, message: string | Uint8Array, signatures: readonly string[]): boolean;
}
