/**
 * FNV-1a, 32 bits, as 7 characters of [0-9a-z]. Tells texts apart where they must be short. Not for secrets: it is
 * easily reversed for short texts.
 */
export function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(36).padStart(7, '0');
}
