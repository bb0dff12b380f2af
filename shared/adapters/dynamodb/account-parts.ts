/** The item of `runtime` that says how many parts an account has: read with its keys, written by splits. */
import type { Attributes } from './attributes.ts';

export const partsId = (account: string): string => `parts#${account}`;

export const partsItem = (account: string, parts: number): Attributes => ({
  id: { S: partsId(account) },
  parts: { N: String(parts) },
});
