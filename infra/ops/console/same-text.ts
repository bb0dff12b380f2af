/** Compares secrets. */
import { createHash, timingSafeEqual } from 'node:crypto';

/** In a time that says nothing about where two texts differ. */
export function isSame(a: string, b: string): boolean {
  const [first, second] = [a, b].map((text) => createHash('sha256').update(text).digest());
  return first !== undefined && second !== undefined && timingSafeEqual(first, second);
}
