/** The item of `runtime` that says how many parts an account has: read with its keys, written by splits. */
import type { Attributes } from '../attributes.ts';
import { numberAttribute, textAttribute } from './quota-attributes.ts';

export const partsId = (account: string): string => `parts#${account}`;

export const partsItem = (account: string, parts: number): Attributes => ({
  id: textAttribute(partsId(account)),
  parts: numberAttribute(parts),
});
