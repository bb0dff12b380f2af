/** The text that the customer of a leaked key is sent, and the refund that may be offered. */
import { formatYuan } from '../../billing/amount.ts';
import { isoTime } from '../../wire/iso-time.ts';
import type { KeyUse } from './key-use.ts';
import type { LeakedKeyPlan } from './leaked-key.ts';
import { shellWord } from '../shell-word.ts';

interface Leak {
  plan: Pick<LeakedKeyPlan, 'account' | 'hint' | 'use'>;
  /** Undefined: no successor was made. */
  secretKey: string | undefined;
  use: KeyUse | undefined;
}

const spentOf = ({ sum }: KeyUse): bigint => sum.amounts.charged ?? 0n;

/** Lines, ready to send. */
export function leakedMessage({ plan: { account, hint }, secretKey, use }: Leak): string[] {
  return [
    `Your key ${hint} (account ${account}) was found in a place where others can read it. We have switched it off.`,
    ...(use
      ? [
          `Since ${isoTime(use.sinceMs)} it made ${use.sum.counts.calls ?? 0} calls for ${formatYuan(spentOf(use))} yuan. Tell us which of them are not yours.`,
        ]
      : []),
    ...(secretKey === undefined
      ? []
      : ['', `Your new key, with the same rights: ${secretKey}`, 'Put it in place of the old one.']),
  ];
}

/** Of the grant that returns what a leaked key spent. @param key first 12 hex digits of its hash, as ledger rows have it */
export const leakedGrantId = (key: string): string => `leaked-${key}`;

/** What the grant of `account grant` is to have. */
export interface LeakedRefund {
  account: string;
  /** Yuan. */
  amount: string;
  id: string;
  reason: string;
}

/** Refunds what the key spent, less what was refunded; undefined: nothing is left. Its id lets it happen once. */
export function leakedRefund({
  plan: { account, use: wanted },
  use,
}: Omit<Leak, 'secretKey'>): LeakedRefund | undefined {
  const spent = use ? spentOf(use) - use.refunded : 0n;
  if (spent <= 0n) return undefined;
  const id = leakedGrantId(wanted.hash.slice(0, 12));
  return { account, amount: formatYuan(spent), id, reason: 'calls of a leaked key' };
}

export const refundCommand = ({ account, amount, id, reason }: LeakedRefund): string =>
  `account grant ${shellWord(account)} ${amount} --id ${id} --reason "${reason}"`;
