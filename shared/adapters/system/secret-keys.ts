/**
 * Generates clients' keys and other unguessable values. Tables and logs must hold only a key's hash and hint.
 */
import { randomBytes } from 'node:crypto';

/** A new secret key: `sk-` and 48 URL-safe characters, 288 random bits. */
export const newSecretKey = (): string => `sk-${randomBytes(36).toString('base64url')}`;

export const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex');
