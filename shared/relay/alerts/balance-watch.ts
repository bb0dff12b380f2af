/**
 * Tells once when an account's balance falls below its limit, and again only after it was back. Must never move money.
 *
 * A look reads the mark, then the balance, and writes the mark only if it is still as it was read; after a write it
 * looks again. So marks open and close in turn, each by a balance that was seen after the write before, however many
 * consumers look at once; and whoever writes last has seen the balance after it.
 */
import type { AlertAccounts, AlertStore } from '../ports/alerts.ts';
import type { QuotaChange } from '../ports/money-stores.ts';
import { StoreBusy } from '../ports/store-errors.ts';
import { formatYuan, type NanoYuan } from '../../billing/money.ts';
import { sumReserved, type QuotaItem } from '../../billing/quota-item.ts';
import type { Notice } from '../../wire/public-api.ts';
import type { Clock, Ids } from '../ports/host.ts';

interface BalanceWatchPorts extends NoticeInput {
  marks: AlertStore;
  accounts: Pick<AlertAccounts, 'row' | 'alertBelow' | 'balance'>;
}

export type BalanceWatch = ReturnType<typeof balanceWatch>;

export const balanceCause = (account: string): string => `balance#${account}`;

/** Other consumers write between read and write; each of them finishes a look. */
const looksMax = 8;

export const balanceWatch = (ports: BalanceWatchPorts) => ({
  /** Looks at an account, whatever changed. */
  look: (account: string): Promise<void> => settleMark(ports, account),
  /** Accepts changes in any order and repeatedly. Rejects when the change needs a retry. */
  take: async (change: QuotaChange): Promise<void> => {
    const account = accountOfShard(change.account);
    const limit = await ports.accounts.alertBelow(account);
    if (limit !== undefined && isWorthALook(change, limit)) await settleMark(ports, account);
  },
});

async function settleMark(ports: BalanceWatchPorts, account: string): Promise<void> {
  const { accounts } = ports;
  const findAlert = async () => {
    const [row, balance] = await Promise.all([accounts.row(account), accounts.balance(account)]);
    const low = findLowBalance(balance, row?.alertBelow);
    return low && { ...low, account };
  };
  for (let looks = 0; looks < looksMax; looks += 1)
    if (!(await updateMark(ports, balanceCause(account), findAlert))) return;
  throw new StoreBusy('The mark of a balance keeps changing.');
}

/** Reads the mark, then looks for an alert, and raises or clears the mark to match it. Returns false if they match already. */
export async function updateMark(
  { marks, ...parts }: NoticeInput & { marks: AlertStore },
  cause: string,
  findAlert: () => Promise<NoticeContent | undefined>,
): Promise<boolean> {
  const seen = (await marks.marks([cause])).get(cause);
  const alert = await findAlert();
  if ((alert !== undefined) === (seen?.open ?? false)) return false;
  if (alert) await marks.raise({ cause, seen, notice: createNotice(parts, alert) });
  else if (seen) await marks.clear(cause, seen);
  return true;
}

// Decides when a balance is worth a look, and when it is low. Pure; the sum over all parts counts.

/**
 * An account has at most 64 parts. Each may spend a step unseen, so a crossing is seen before the balance is a
 * sixteenth of the limit below it.
 */
const stepsOfLimit = 1024n;

/**
 * True if the sum over the shards may have crossed the limit. While a single shard holds the limit, so does the sum;
 * below it, each step that the part spends is worth a look, and so is money that comes or goes.
 */
export function isWorthALook({ before, after }: QuotaChange, limit: NanoYuan): boolean {
  if (!after) return false;
  if (!before || before.granted !== after.granted) return true;
  const [had, has] = [fundsOf(before), fundsOf(after)];
  if (has >= limit) return had < limit;
  return had >= limit || stepOf(before, limit) !== stepOf(after, limit);
}

/** Money of calls in flight is still the account's. */
const fundsOf = (item: QuotaItem): NanoYuan => item.available + sumReserved(item);

const stepOf = ({ spent }: QuotaItem, limit: NanoYuan): bigint => (spent * stepsOfLimit) / limit;

/** Facts of the notice while the balance is below its limit. */
export function findLowBalance(
  balance: NanoYuan | undefined,
  limit: NanoYuan | undefined,
): Pick<Notice, 'type' | 'data'> | undefined {
  if (limit === undefined || balance === undefined || balance >= limit) return undefined;
  return { type: 'balance.low', data: { balance: formatYuan(balance), alert_below: formatYuan(limit) } };
}

/** The account of an item of `quotas`: a part beyond the first is `<account>#<number>`. */
export const accountOfShard = (key: string): string => key.replace(/#\d+$/, '');

export interface NoticeInput {
  clock: Pick<Clock, 'now'>;
  ids: Ids;
}

type NoticeContent = Pick<Notice, 'type' | 'account' | 'data'>;

export const createNotice = ({ clock, ids }: NoticeInput, about: NoticeContent): Notice => ({
  id: ids.next(),
  created: Math.floor(clock.now() / 1000),
  ...about,
});
