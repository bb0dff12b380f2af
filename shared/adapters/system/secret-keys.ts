/** Makes the keys of clients; in tables and logs there is only their hash and their hint. */
import { randomBytes } from 'node:crypto';

/** A new secret key: `sk-` and 48 URL-safe characters, 288 bits of chance. */
export const newSecretKey = (): string => `sk-${randomBytes(36).toString('base64url')}`;
