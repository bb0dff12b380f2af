/** New keys of clients, and values that nobody can guess. */
import { createHash, randomBytes } from 'node:crypto';

/** A new secret key: `sk-` and 48 URL-safe characters, 288 random bits. */
export const newSecretKey = (): string => `sk-${randomBytes(36).toString('base64url')}`;

export const randomHex = (bytes: number): string => randomBytes(bytes).toString('hex');

/** SHA-256 in hex: the only form in which a key is stored. */
export const hashOf = (secretKey: string): string => createHash('sha256').update(secretKey).digest('hex');

/** What lists and logs may show of a key: enough to recognise it, far too little to guess it. */
export const hintOf = (secretKey: string): string => `${secretKey.slice(0, 7)}...${secretKey.slice(-4)}`;

/** What the relay accepts as the form of a key; other texts are refused without a look at the table. */
export const isWellFormed = (secretKey: string): boolean => /^sk-[\x21-\x7e]{1,200}$/.test(secretKey);
