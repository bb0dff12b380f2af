import { randomBytes } from 'node:crypto';
import type { Clock, Ids } from '../relay/ports.ts';

/** Crockford's base 32 in lower case: its characters sort as their values do. */
const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';

/** 10 characters of milliseconds, then 16 random ones (80 bits): ids sort by time of creation. */
export const timeSortedIds = (clock: Clock): Ids => ({
  next: () => timeText(clock.now()) + randomText(),
});

function timeText(milliseconds: number): string {
  let text = '';
  let rest = milliseconds;
  for (let place = 0; place < 10; place += 1) {
    text = alphabet.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

function randomText(): string {
  let text = '';
  // A byte modulo 32 is uniform, as 256 is a multiple of 32.
  for (const byte of randomBytes(16)) text += alphabet.charAt(byte % 32);
  return text;
}
