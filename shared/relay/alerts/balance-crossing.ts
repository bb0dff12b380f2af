/** Decides when a balance is worth a look, and when it is low. Pure; the sum over all parts counts. */
import { formatYuan, type NanoYuan } from '../../billing/amount.ts';
import { reservedOf, type QuotaItem } from '../../billing/quota-item.ts';
import type { QuotaChange } from '../ports/stores/ledger-store.ts';
import type { Notice } from '../../wire/public/notice.ts';

/**
 * An account has at most 64 parts. Each may spend a step unseen, so a crossing is seen before the balance is a
 * sixteenth of the limit below it.
 */
const stepsOfLimit = 1024n;

/**
 * Whether the sum over the parts may have crossed the limit. While a part alone holds the limit, so does the sum;
 * below it, each step that the part spends is worth a look, and so is money that comes or goes.
 */
export function isWorthALook({ before, after }: QuotaChange, limit: NanoYuan): boolean {
  if (!after) return false;
  if (!before || before.granted !== after.granted) return true;
  const [had, has] = [ownedBy(before), ownedBy(after)];
  if (has >= limit) return had < limit;
  return had >= limit || stepOf(before, limit) !== stepOf(after, limit);
}

/** Money of calls in flight is still the account's. */
const ownedBy = (item: QuotaItem): NanoYuan => item.available + reservedOf(item);

const stepOf = ({ spent }: QuotaItem, limit: NanoYuan): bigint => (spent * stepsOfLimit) / limit;

/** What to tell while the balance is below its limit; undefined: it is not. */
export function lowBalance({
  balance,
  limit,
}: {
  balance: NanoYuan | undefined;
  limit: NanoYuan | undefined;
}): Pick<Notice, 'type' | 'data'> | undefined {
  if (limit === undefined || balance === undefined || balance >= limit) return undefined;
  return { type: 'balance.low', data: { balance: formatYuan(balance), alert_below: formatYuan(limit) } };
}

/** The account of an item of `quotas`: a part beyond the first is `<account>#<number>`. */
export const accountOfPart = (key: string): string => key.replace(/#\d+$/, '');
