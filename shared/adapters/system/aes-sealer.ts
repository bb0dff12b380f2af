/**
 * Seals with AES-256-GCM under numbered keys; the last key seals, all open. The text is deflated first. Must never
 * inflate without a bound.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Sealer } from '../../relay/ports/sealer.ts';
import { sealPrefix } from '../../wire/seal-prefix.ts';
import type { SealKey } from './environment.ts';

/** Above what a reader keeps of one turn, also as JSON. */
const textBytesMax = 16 * 1024 * 1024;
const checkLength = 4;
const nonceLength = 12;
const tagLength = 16;
const form = new RegExp(`^${sealPrefix.replace('.', '\\.')}(\\d{1,4})\\.([A-Za-z0-9_-]+)$`);

interface Key {
  number: number;
  secret: Buffer;
  /**
   * Stands before the sealed bytes. A number says which key was used, but a stack that was made anew has other keys
   * under the same numbers: without this, their seals would look damaged.
   */
  check: Buffer;
}

/** @param keys oldest first, at least one */
export function aesSealer(keys: readonly SealKey[]): Sealer {
  const known = new Map(keys.map((key) => [key.number, keyOf(key)]));
  const newest = [...known.values()].at(-1);
  if (!newest) throw new Error('no seal key');
  return {
    seal: (text) => `${sealPrefix}${newest.number}.${sealed(newest, text).toString('base64url')}`,
    open(text) {
      const [, number, body] = form.exec(text) ?? [];
      if (number === undefined || body === undefined) return 'damaged';
      const key = known.get(Number(number));
      if (!key) return 'unknown_key';
      return opened(key, Buffer.from(body, 'base64url'));
    },
  };
}

function keyOf({ number, secret: text }: SealKey): Key {
  const secret = sha256(text);
  return { number, secret, check: sha256(secret).subarray(0, checkLength) };
}

const sha256 = (value: string | Buffer): Buffer => createHash('sha256').update(value).digest();

function sealed({ number, secret, check }: Key, text: string): Buffer {
  const nonce = randomBytes(nonceLength);
  const cipher = createCipheriv('aes-256-gcm', secret, nonce).setAAD(headOf(number));
  const body = Buffer.concat([cipher.update(deflateRawSync(text)), cipher.final()]);
  return Buffer.concat([check, nonce, cipher.getAuthTag(), body]);
}

function opened({ number, secret, check }: Key, bytes: Buffer): { text: string } | 'unknown_key' | 'damaged' {
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

/** The form and the key's number are sealed along, so that they cannot be changed either. */
const headOf = (number: number): Buffer => Buffer.from(`${sealPrefix}${number}`);
