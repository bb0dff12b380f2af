/** View: accounts whose balance does not last long at the pace of the last weeks. Reads sums and balances. */
import type { NanoYuan } from '../../billing/amount.ts';
import { spendingPace } from '../ledger/spending-pace.ts';
import type { OperatorPorts } from '../operator-ports.ts';

export interface NearEmptyAccount {
  account: string;
  available: NanoYuan;
  /** What was spent a day, on average. */
  perDay: NanoYuan;
  /** 0: it is empty. */
  daysLeft: number;
}

export interface NearEmptyAccounts {
  /** The emptiest first. */
  accounts: NearEmptyAccount[];
  problems: string[];
}

const nearDays = 7;

/** Accounts that are charged nothing, such as those of a plan alone, do not run empty. */
export async function accountsNearEmpty(
  ports: Pick<OperatorPorts, 'clock' | 'ledger'>,
): Promise<NearEmptyAccounts> {
  const { charged, days: exactly, problems: unread } = await spendingPace(ports);
  const days = Math.ceil(exactly);
  const balances = await ports.ledger.quotas([...charged.keys()]);
  const problems = balances.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : []));
  const accounts = balances.flatMap((each): NearEmptyAccount[] => {
    if (!('row' in each)) return [];
    const { account, available } = each.row;
    const perDay = (charged.get(account) ?? 0n) / BigInt(days);
    const daysLeft = available <= 0n ? 0 : perDay === 0n ? Infinity : Number(available) / Number(perDay);
    return daysLeft < nearDays ? [{ account, available, perDay, daysLeft }] : [];
  });
  accounts.sort((a, b) => a.daysLeft - b.daysLeft || a.account.localeCompare(b.account));
  return { accounts, problems: [...unread, ...problems] };
}
