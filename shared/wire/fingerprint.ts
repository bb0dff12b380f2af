/**
 * FNV-1a, 32 bits, as 7 characters of [0-9a-z]. Tells texts apart where they must be short. Not for secrets: it is
 * easily reversed for short texts.
 */
export function fingerprint(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(36).padStart(7, '0');
}

const wholeLength = 2_048;
const endLength = 512;
const samplesBetween = 1_024;

/**
 * A whole number of 53 bits. Bounded work: of texts over 2,048 characters it reads both ends and about 1,024 evenly
 * spaced characters between them. Not for secrets: who knows the function finds texts of equal hash.
 * @param seed a hash before it, so that texts can be hashed one after the other
 */
export function hash53(text: string, seed = 0): number {
  const { length } = text;
  if (length <= wholeLength) return hashOfRange(text, seed, { from: 0, to: length, step: 1 });
  const tail = length - endLength;
  const step = Math.ceil((tail - endLength) / samplesBetween);
  const head = hashOfRange(text, seed, { from: 0, to: endLength, step: 1 });
  const middle = hashOfRange(text, head, { from: endLength, to: tail, step });
  return hashOfRange(text, middle, { from: tail, to: length, step: 1 });
}

function hashOfRange(
  text: string,
  seed: number,
  { from, to, step }: { from: number; to: number; step: number },
): number {
  let low = Math.imul(seed ^ 0x9e3779b1, 0x85ebca6b);
  let high = Math.imul((seed / 2 ** 32) ^ text.length, 0xc2b2ae35);
  for (let i = from; i < to; i += step) {
    const code = text.charCodeAt(i);
    low = Math.imul(low ^ code, 0xcc9e2d51);
    low ^= low >>> 15;
    high = Math.imul(high ^ code, 0x1b873593);
    high ^= high >>> 13;
  }
  return mixed53(low, high);
}

/** Two lanes of 32 bits as one of 32 well-mixed bits, with a sign. */
export const mixed32 = (low: number, high: number): number => avalanche(low ^ Math.imul(high, 0x9e3779b1));

/** Two lanes of 32 bits as 53 well-mixed bits. */
function mixed53(low: number, high: number): number {
  const first = mixed32(low, high);
  const second = avalanche(high ^ Math.imul(first, 0x85ebca6b));
  return (second & 0x1fffff) * 2 ** 32 + (first >>> 0);
}

/** MurmurHash3's last step: each bit of the input changes half of the bits of the result. */
function avalanche(lane: number): number {
  let mixed = lane ^ (lane >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
