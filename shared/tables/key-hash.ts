import { createHash } from 'node:crypto';

/** SHA-256, in hex, of a whole `sk-` key: the only form in which a key is stored. */
export const keyHash = (secretKey: string): string => createHash('sha256').update(secretKey).digest('hex');
