/** Ids of requests, patterns of names and keys, and hashes. Uses no clock and no chance. */
import { hash } from 'node:crypto';

/** Crockford's base 32 in lower case. The characters sort in the order of their values. */
export const idAlphabet = '0123456789abcdefghjkmnpqrstvwxyz';

const idPattern = /^[0-9a-hjkmnp-tv-z]{26}$/;
const timeLength = 10;

/** The first 10 characters of a request id: its creation time in epoch milliseconds. */
export function timeText(milliseconds: number): string {
  let text = '';
  let rest = milliseconds;
  for (let place = 0; place < timeLength; place += 1) {
    text = idAlphabet.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

/** The start of a request in epoch milliseconds, read from its id; undefined if that is no request id. */
export function requestTimeMs(id: string): number | undefined {
  if (!idPattern.test(id)) return undefined;
  let milliseconds = 0;
  for (const character of id.slice(0, timeLength))
    milliseconds = milliseconds * 32 + idAlphabet.indexOf(character);
  return milliseconds;
}

/** Texts of another form are refused before any table is read. */
export const isSecretKey = (text: string): boolean => /^sk-[\x21-\x7e]{1,200}$/.test(text);

/** SHA-256, in hex, of a whole `sk-` key: the only form in which a key is stored. */
export const keyHash = (secretKey: string): string => hash('sha256', secretKey);

/** The part of a key that lists and logs show: enough to recognise the key, too little to guess it. */
export const keyHint = (secretKey: string): string => `${secretKey.slice(0, 7)}...${secretKey.slice(-4)}`;

export const isTagName = (text: string): boolean => /^[A-Za-z][\w-]{0,31}$/.test(text);

/** Figures and marks keep only the start of a longer id: a sort key has at most 1,024 bytes, and one item of 400 KB holds all marks. */
export const channelIdMax = 200;
export const shortenChannelId = (id: string): string => id.slice(0, channelIdMax);

/** A model name in requests, in rows and in upstreams' lists of models. */
export const modelNamePattern = /^[A-Za-z0-9._:/@-]{1,128}$/;

/** `*` matches any text. Searches the parts between stars in order, without backtracking, so that no row's pattern can slow calls down. */
export function fitsPattern(pattern: string, text: string): boolean {
  const [first = '', ...more] = pattern.split('*');
  const last = more.pop();
  if (last === undefined) return text === pattern;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length)
    return false;
  let from = first.length;
  for (const part of more) {
    const found = text.indexOf(part, from);
    if (found === -1) return false;
    from = found + part.length;
  }
  return from <= text.length - last.length;
}

/** The longest name of a tool, of a namespace and of an author: OpenAI's limit. */
export const calledNameMax = 64;

/** The prefix of encrypted state. The whole form is `relay1.<number of the key>.<base64url>`. */
export const sealPrefix = 'relay1.';

/**
 * On requests to upstreams: the ids of the relays that the call passed, oldest first. Of our own making, because proxies
 * and vendors rewrite `via`, and refuse requests by it.
 */
export const hopHeader = 'x-relay-hop';

/** On a refusal because of a loop, so that the relay before this one can name the cause without reading the body. */
export const loopHeader = 'x-relay-loop';

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
  return mix53(low, high);
}

/** Two lanes of 32 bits as one of 32 well-mixed bits, with a sign. */
export const mix32 = (low: number, high: number): number => avalanche(low ^ Math.imul(high, 0x9e3779b1));

/** Two lanes of 32 bits as 53 well-mixed bits. */
function mix53(low: number, high: number): number {
  const first = mix32(low, high);
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
