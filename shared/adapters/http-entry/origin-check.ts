/** Whether a request came through the distribution, which adds a secret that nobody else knows. */
import { createHash, timingSafeEqual } from 'node:crypto';

/** The header that carries the secret. */
export const originHeader = 'x-relay-origin';

/**
 * Compares in constant time, and with every accepted secret, so that the time taken tells nothing. An empty list
 * accepts no request.
 */
export function isFromOrigin(sent: string | undefined, accepted: readonly string[]): boolean {
  const given = digest(sent ?? '');
  let matches = 0;
  for (const secret of accepted) matches += Number(timingSafeEqual(given, digest(secret)));
  return matches > 0 && Boolean(sent);
}

// Digests have one length, which timingSafeEqual needs.
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
