/**
 * Request ids: ULIDs in lower case, 10 characters of milliseconds, then 16 random ones (80 bits). They sort by time. And
 * random numbers for jitter and weights, which must never be used for secrets.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../relay/ports/clock.ts';
import type { Ids, Random } from '../../relay/ports/ids.ts';
import { idAlphabet, timeText } from '../../wire/request-id.ts';

export const timeSortedIds = (clock: Clock): Ids => ({
  next: () => timeText(clock.now()) + randomText(),
});

function randomText(): string {
  let text = '';
  // A byte modulo 32 is uniform, as 256 is a multiple of 32.
  for (const byte of randomBytes(16)) text += idAlphabet.charAt(byte % 32);
  return text;
}

export const systemRandom: Random = { next: () => Math.random() };
