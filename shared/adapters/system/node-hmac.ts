/** HMAC by Node's crypto. Must compare in constant time. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Hmac } from '../../relay/ports/hmac.ts';
import type { Pseudonym } from '../../relay/ports/pseudonym.ts';

const digest = (secret: string, message: string | Uint8Array): Buffer =>
  createHmac('sha256', secret).update(message).digest();

export const nodeHmac: Hmac = {
  sign: (secret, message) => digest(secret, message).toString('hex'),
  matches(secret, message, signatures) {
    const wanted = digest(secret, message);
    let found = 0;
    for (const signature of signatures) {
      const given = Buffer.from(signature, 'hex');
      // The length is no secret: every right signature has the same.
      found += Number(given.length === wanted.length && timingSafeEqual(given, wanted));
    }
    return found > 0;
  },
};

/** As JSON, so that no two pairs of account and name are one message. */
export const hmacPseudonym =
  (key: string): Pseudonym =>
  (account, name) =>
    nodeHmac.sign(key, JSON.stringify([account, name]));
