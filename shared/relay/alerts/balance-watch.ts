/**
 * Tells once when an account's balance falls below its limit, and again only after it was back. Must never move money.
 *
 * A look reads the mark, then the balance, and writes the mark only if it is still as it was read; after a write it
 * looks again. So marks open and close in turn, each by a balance that was seen after the write before, however many
 * consumers look at once; and whoever writes last has seen the balance after it.
 */
import type { AlertAccounts, AlertStore } from '../ports/alerts/alert-store.ts';
import type { QuotaChange } from '../ports/stores/ledger-store.ts';
import { StoreBusy } from '../ports/stores/store-errors.ts';
import { accountOfPart, isWorthALook, lowBalance } from './balance-crossing.ts';
import { newNotice, type NoticeParts } from './new-notice.ts';

export interface BalanceWatchPorts extends NoticeParts {
  marks: AlertStore;
  accounts: Pick<AlertAccounts, 'row' | 'alertBelow' | 'balance'>;
}

export interface BalanceWatch {
  /** Accepts changes in any order and repeatedly. Rejects when the change needs a retry. */
  take: (change: QuotaChange) => Promise<void>;
  /** Looks at an account, whatever changed. */
  look: (account: string) => Promise<void>;
}

export const balanceCause = (account: string): string => `balance#${account}`;

/** Other consumers write between read and write; each of them finishes a look. */
const looksMax = 8;

export function balanceWatch(ports: BalanceWatchPorts): BalanceWatch {
  const look = oneAfterAnother((account) => settleMark(ports, account));
  return {
    look,
    async take(change) {
      const account = accountOfPart(change.account);
      const limit = await ports.accounts.alertBelow(account);
      if (limit !== undefined && isWorthALook(change, limit)) await look(account);
    },
  };
}

async function settleMark({ marks, accounts, ...parts }: BalanceWatchPorts, account: string): Promise<void> {
  const cause = balanceCause(account);
  for (let looks = 0; looks < looksMax; looks += 1) {
    const seen = (await marks.marks([cause])).get(cause);
    const [row, balance] = await Promise.all([accounts.row(account), accounts.balance(account)]);
    const limit = row?.alertBelow;
    const below = lowBalance({ balance, limit });
    if ((below !== undefined) === (seen?.open ?? false)) return;
    if (below) await marks.raise({ cause, seen, notice: newNotice(parts, { ...below, account }) });
    else if (seen) await marks.clear(cause, seen);
  }
  throw new StoreBusy('The mark of a balance keeps changing.');
}

/**
 * Runs at most one look an account at a time. Whoever comes while one runs shares the next one, which begins after the
 * change that it comes for.
 */
function oneAfterAnother(look: (account: string) => Promise<void>): (account: string) => Promise<void> {
  const running = new Map<string, Promise<void>>();
  const next = new Map<string, Promise<void>>();
  const start = (account: string): Promise<void> => {
    const run = look(account).finally(() => running.delete(account));
    running.set(account, run);
    return run;
  };
  return (account) => {
    const current = running.get(account);
    if (!current) return start(account);
    const waiting = next.get(account) ?? current.then(again, again);
    function again(): Promise<void> {
      next.delete(account);
      return start(account);
    }
    next.set(account, waiting);
    return waiting;
  };
}
