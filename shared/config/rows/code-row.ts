/**
 * A redeem code: a row of `codes` under the hash of the code. The code itself is shown only once, when it is created. Its 100 random bits
 * can be neither guessed nor recovered from the hash.
 */
import * as z from 'zod/mini';
import { idAlphabet, keyHash } from '../../wire/ids.ts';
import { accountName, rowId, text, time, yuanThat } from './read-row.ts';

/** Operators write codes. Functions add the attributes of a redemption, in the same transaction as its grant. */
export const CodeRow = z.strictObject({
  hash: text,
  batch: rowId.check(z.maxLength(100, 'a text of at most 100 characters')),
  // JavaScript numbers represent whole fen exactly.
  amount: yuanThat(
    'yuan from 0.01 to 1,000,000, with at most 2 decimals',
    (amount) => amount > 0n && amount <= 1_000_000n * 10n ** 9n && amount % 10_000_000n === 0n,
  ),
  expires_at: z.optional(time),
  revoked_at: z.optional(text),
  redeemed_by: z.optional(accountName),
  redeemed_at: z.optional(time),
});
export type CodeRow = z.infer<typeof CodeRow>;

const length = 20;
export const codeBytes = length;

/** @param hex `codeBytes` random bytes, each of which gives five bits */
export const formatCode = (hex: string): string =>
  (hex.match(/../g) ?? [])
    .map((byte, at) => (at > 0 && at % 5 === 0 ? '-' : '') + idAlphabet.charAt(parseInt(byte, 16) % 32))
    .join('')
    .toUpperCase();

/** Hashes a code as people type it: in any case and width, with blanks and dashes, O for 0, I and L for 1. */
export function hashCode(typed: string): string | undefined {
  const plain = typed
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '');
  const code = plain.replaceAll('o', '0').replaceAll(/[il]/g, '1');
  return code.length === length ? keyHash(code) : undefined;
}

/** The id of a code in lists, and of its grant. Reveals nothing of the code itself. */
export const codeIdOf = (hash: string): string => `code-${hash.slice(0, 16)}`;

export function findCodeState({ redeemed_by, revoked_at, expires_at = Infinity }: CodeRow, nowMs: number) {
  if (redeemed_by !== undefined) return 'redeemed';
  if (revoked_at !== undefined) return 'revoked';
  return expires_at <= nowMs ? 'expired' : 'open';
}
