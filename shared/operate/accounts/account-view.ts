/** View: everything that the tables contain about an account. */
import { accountPlan } from '../../billing/plans/account-plan.ts';
import type { WrittenGrant } from '../../billing/grant.ts';
import type { WholeAccount } from '../../billing/parts/whole.ts';
import { emptyQuota, imbalance } from '../../billing/quota-item.ts';
import { compileSnapshot } from '../../config/compile/compile-snapshot.ts';
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { AccountPlan } from '../../wire/public/account.ts';
import { listKeys, type KeyView } from '../keys/list-keys.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';

export interface AccountView {
  account: string;
  /** The sums over the account's parts. */
  item: WholeAccount;
  /** The plan that covers calls now, with its counts; null: no plan does. */
  plan: AccountPlan | null;
  keys: KeyView[];
  grants: WrittenGrant[];
  warnings: string[];
}

export async function viewAccount(ports: OperatorPorts, account: string): Promise<AccountView> {
  const { tables, ledger, target } = ports;
  const [raw, quota, plans, settings, keys, pages] = await Promise.all([
    tables.get('accounts', account),
    ledger.quota(account),
    tables.scan('plans'),
    tables.scan('settings'),
    listKeys(ports, { account }),
    Array.fromAsync(ledger.grants(account)),
  ]);
  const grants = pages.flat();
  if (!raw && !quota && grants.length === 0 && keys.length === 0)
    throw usageFailure(`nothing is known of an account ${account}: see \`customer list\``);
  if (quota && 'problem' in quota) throw new Failure(quota.problem);

  const item = quota?.row ?? emptyQuota(account);
  const reading = raw && readRow(AccountRow, raw);
  const held = reading && 'row' in reading ? reading.row.plan : undefined;
  const { snapshot } = compileSnapshot(
    { channels: [], charges: [], plans, settings },
    { local: target.local, publishedAt: 0 },
  );
  const facts = { held, counts: item.plan, plans: snapshot.plans, nowMs: ports.clock.now() };
  const plan = snapshot.settings.subscriptionEnabled ? accountPlan(facts) : null;
  const warnings = [
    !raw && `the table accounts has no row ${account}, so it can hold no plan`,
    isAccountOff(raw) && 'enabled is not true in its row: every key of the account is refused',
    reading && 'problem' in reading && `the row in accounts is not used: ${reading.problem}`,
    held && !plan && 'the plan of its row covers nothing now: see since, until, and subscription.enabled',
    (imbalance(item) !== undefined || item.moved !== 0n) && 'this account does not balance: see `audit`',
  ];
  return { account, item, plan, keys, grants, warnings: warnings.filter((each) => typeof each === 'string') };
}
