/** Makes the keys of clients, and other values that nobody can guess. Of a key, tables and logs have hash and hint alone. */
import { randomBytes } from 'node:crypto';

/** A new secret key: `sk-` and 48 URL-safe characters, 288 random bits. */
export const newSecretKey = (): string => `sk-${randomBytes(36).toString('base64url')}`;

export const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex');
