import { createHash, timingSafeEqual } from 'node:crypto';

/** The header in which the front door proves itself. */
export const originHeader = 'x-relay-origin';

/**
 * Whether the request came through the front door: one of the accepted secrets was sent. Compares in constant time, and
 * with every secret, so that the time taken tells nothing. An empty list accepts nobody.
 */
export function isFromOrigin(sent: string | undefined, accepted: readonly string[]): boolean {
  const given = digest(sent ?? '');
  let matches = 0;
  for (const secret of accepted) matches += Number(timingSafeEqual(given, digest(secret)));
  return matches > 0 && Boolean(sent);
}

// Digests have one length, which timingSafeEqual needs.
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
