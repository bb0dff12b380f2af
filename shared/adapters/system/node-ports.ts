/** The ports on Node itself: time, ids, random numbers, HMAC, encryption, inflating, and bounded caches. */
import {
  randomBytes,
  createHmac,
  timingSafeEqual,
  createCipheriv,
  createDecipheriv,
  hash,
} from 'node:crypto';
import { deflateRawSync, inflateRawSync, inflateSync } from 'node:zlib';
import type { Clock, Ids, Random, Hmac, Pseudonym, Sealer, Inflate } from '../../relay/ports/host.ts';
import { idAlphabet, timeText, sealPrefix } from '../../wire/ids.ts';
import { keepNewest } from '../../wire/keep-newest.ts';
import type { StateKey } from './environment.ts';

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep: (milliseconds, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const wake = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, milliseconds);
      signal?.addEventListener('abort', wake);
    }),
};

// Request ids: ULIDs in lower case, so they sort by time. `systemRandom` is for jitter and weights, never for secrets.

export const timeSortedIds = (clock: Clock): Ids => ({
  next: () => timeText(clock.now()) + generateIdText(),
});

function generateIdText(): string {
  let text = '';
  // Uniform, because 256 is a multiple of 32.
  for (const byte of randomBytes(16)) text += idAlphabet.charAt(byte % 32);
  return text;
}

export const systemRandom: Random = { next: () => Math.random() };

// Must compare in constant time.

const computeHmac = (secret: string, message: string | Uint8Array): Buffer =>
  createHmac('sha256', secret).update(message).digest();

export const nodeHmac: Hmac = {
  sign: (secret, message) => computeHmac(secret, message).toString('hex'),
  matches(secret, message, signatures) {
    const wanted = computeHmac(secret, message);
    let matchCount = 0;
    for (const signature of signatures) {
      const given = Buffer.from(signature, 'hex');
      // The length is public: all valid signatures have the same.
      matchCount += Number(given.length === wanted.length && timingSafeEqual(given, wanted));
    }
    return matchCount > 0;
  },
};

/** JSON keeps pairs of account and name distinct. */
export const createPseudonym =
  (key: string): Pseudonym =>
  (account, name) =>
    nodeHmac.sign(key, JSON.stringify([account, name]));

// Secret values. Tables and logs must hold only a key's hash and hint.

/** `sk-` and 48 URL-safe characters, 288 random bits. */
export const generateSecretKey = (): string => `sk-${randomBytes(36).toString('base64url')}`;

export const generateHex = (bytes: number): string => randomBytes(bytes).toString('hex');

// Encrypts state with AES-256-GCM under numbered keys: the newest encrypts, all decrypt. The text is deflated first. Must
// never inflate without a bound.

const textBytesMax = 16 * 1024 * 1024;
const checkLength = 4;
const nonceLength = 12;
const tagLength = 16;
const form = new RegExp(`^${sealPrefix.replace('.', '\\.')}(\\d{1,4})\\.([A-Za-z0-9_-]+)$`);

interface Key {
  number: number;
  secret: Buffer;
  /**
   * Precedes the encrypted bytes. A recreated stack has other keys under the same numbers; without this check, old states
   * would look damaged.
   */
  check: Buffer;
}

/** @param keys oldest first, at least one */
export function createSealer(keys: readonly StateKey[]): Sealer {
  const known = new Map(keys.map((key) => [key.number, deriveKey(key)]));
  const newest = [...known.values()].at(-1);
  if (!newest) throw new Error('no seal key');
  return {
    seal: (text) => `${sealPrefix}${newest.number}.${encrypt(newest, text).toString('base64url')}`,
    open(text) {
      const [, number, body] = form.exec(text) ?? [];
      if (number === undefined || body === undefined) return 'damaged';
      const key = known.get(Number(number));
      if (!key) return 'unknown_key';
      return decrypt(key, Buffer.from(body, 'base64url'));
    },
  };
}

function deriveKey({ number, secret: text }: StateKey): Key {
  const secret = hashBytes(text);
  return { number, secret, check: hashBytes(secret).subarray(0, checkLength) };
}

const hashBytes = (value: string | Buffer): Buffer => hash('sha256', value, 'buffer');

function encrypt({ number, secret, check }: Key, text: string): Buffer {
  const nonce = randomBytes(nonceLength);
  const cipher = createCipheriv('aes-256-gcm', secret, nonce).setAAD(headOf(number));
  const body = Buffer.concat([cipher.update(deflateRawSync(text)), cipher.final()]);
  return Buffer.concat([check, nonce, cipher.getAuthTag(), body]);
}

function decrypt(
  { number, secret, check }: Key,
  bytes: Buffer,
): { text: string } | 'unknown_key' | 'damaged' {
  const tagStart = checkLength + nonceLength;
  const bodyStart = tagStart + tagLength;
  if (bytes.length <= bodyStart) return 'damaged';
  if (!bytes.subarray(0, checkLength).equals(check)) return 'unknown_key';
  try {
    const decipher = createDecipheriv('aes-256-gcm', secret, bytes.subarray(checkLength, tagStart))
      .setAAD(headOf(number))
      .setAuthTag(bytes.subarray(tagStart, bodyStart));
    const deflated = Buffer.concat([decipher.update(bytes.subarray(bodyStart)), decipher.final()]);
    return { text: inflateRawSync(deflated, { maxOutputLength: textBytesMax }).toString() };
  } catch {
    return 'damaged';
  }
}

/** Authenticates the prefix and the key's number, so that neither can be changed. */
const headOf = (number: number): Buffer => Buffer.from(`${sealPrefix}${number}`);

// Synchronous: the budget of a call bounds how much it may inflate.

export const inflateWithZlib: Inflate = (bytes, lengthMax) => {
  try {
    return inflateSync(bytes, { maxOutputLength: Math.max(1, lengthMax) }).toString('latin1');
  } catch {
    return undefined;
  }
};

interface CacheEntry<Value> {
  value: Promise<Value>;
  /** The value may be as old as this start of its load. */
  startedAt: number;
  expiresAt: number;
}

/** A freeze of the environment may have interrupted a longer load, so its result is not shared. */
const loadMsMax = 10_000;

interface ExpiringCacheOptions<Value> {
  clock: Clock;
  entriesMax: number;
  lifetimeMs: (value: Value) => number;
}

/** Drops the least recently used entry first. Concurrent calls share one load. A failed load is not cached. */
export class ExpiringCache<Value> {
  readonly #entries = new Map<string, CacheEntry<Value>>();
  readonly #options: ExpiringCacheOptions<Value>;

  constructor(options: ExpiringCacheOptions<Value>) {
    this.#options = options;
  }

  /** @param ageMsMax reloads an older entry */
  get(key: string, load: () => Promise<Value>, ageMsMax = Infinity): Promise<Value> {
    const { clock, entriesMax, lifetimeMs } = this.#options;
    const startedAt = clock.now();
    const found = this.#entries.get(key);
    const isFresh = found && startedAt < found.expiresAt && startedAt - found.startedAt <= ageMsMax;
    const entry = isFresh ? found : { value: load(), startedAt, expiresAt: startedAt + loadMsMax };
    keepNewest(this.#entries, entriesMax, key, entry);
    if (!isFresh)
      entry.value.then(
        (value) => {
          entry.expiresAt = startedAt + lifetimeMs(value);
        },
        () => {
          if (this.#entries.get(key) === entry) this.#entries.delete(key);
        },
      );
    return entry.value;
  }

  take(key: string): Promise<Value> | undefined {
    const value = this.#entries.get(key)?.value;
    this.#entries.delete(key);
    return value;
  }
}
