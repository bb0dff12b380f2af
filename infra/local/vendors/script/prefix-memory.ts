import { createHash } from 'node:crypto';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Hash of the first part, of the first two, and so on: equal hashes are equal prefixes. */
export function prefixHashes(scope: string, parts: string[]): string[] {
  let hash = sha256(scope);
  return parts.map((part) => (hash = sha256(`${hash}\n${part}`)));
}

const entriesMax = 10_000;

/** Remembers prefixes of prompts, as a vendor's cache does. It never expires: doubles know no time. */
export class PrefixMemory {
  readonly #seen = new Set<string>();

  has(hash: string): boolean {
    return this.#seen.has(hash);
  }

  add(hashes: string[]): void {
    for (const hash of hashes) this.#seen.add(hash);
    for (const oldest of this.#seen) {
      if (this.#seen.size <= entriesMax) return;
      this.#seen.delete(oldest);
    }
  }

  /** How many leading parts were sent before. Remembers all of them. */
  countSeen(scope: string, parts: string[]): number {
    const hashes = prefixHashes(scope, parts);
    const fresh = hashes.findIndex((hash) => !this.has(hash));
    this.add(hashes);
    return fresh === -1 ? parts.length : fresh;
  }
}
