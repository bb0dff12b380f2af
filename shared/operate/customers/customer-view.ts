/**
 * View: one customer on one page: balance, plan, keys, the last grants, use by day. Every read is bounded, however long the
 * customer has been one. `account-view.ts` reads all of it.
 */
import type { WrittenGrant } from '../../billing/grant.ts';
import { accountId } from '../../billing/daily/daily-keys.ts';
import type { DailySum } from '../../billing/daily/daily-sums.ts';
import { accountPlan } from '../../billing/plans/account-plan.ts';
import type { WholeAccount } from '../../billing/parts/whole.ts';
import { emptyQuota, imbalance } from '../../billing/quota-item.ts';
import { compileSnapshot } from '../../config/compile/compile-snapshot.ts';
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { AccountPlan } from '../../wire/public/account.ts';
import { keyViewsOf, type KeyView } from '../keys/list-keys.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { rowsIn } from '../ledger/sum-rows.ts';
import type { RawRow } from '../row-tables.ts';
import { utcDay } from '../../wire/iso-time.ts';

export interface CustomerView {
  account: string;
  /** As written, without what the table does not have: it may be a secret in a wrong row. Undefined: there is no row. */
  row: RawRow | undefined;
  isOff: boolean;
  item: WholeAccount;
  plan: AccountPlan | null;
  keys: KeyView[];
  /** False: the table of keys goes on after what was looked at. */
  hasAllKeys: boolean;
  grants: WrittenGrant[];
  hasAllGrants: boolean;
  /** The last 30 days, by day and model. */
  days: DailySum[];
  warnings: string[];
}

const keysMax = 100;
const grantsMax = 20;
const daysBack = 29;
const dayMs = 86_400_000;

export async function viewCustomer(
  ports: Pick<OperatorPorts, 'clock' | 'ledger' | 'pages' | 'tables' | 'target'>,
  account: string,
): Promise<CustomerView> {
  const { clock, ledger, pages, tables, target } = ports;
  const nowMs = clock.now();
  const [from, to] = [nowMs - daysBack * dayMs, nowMs].map((ms) => utcDay(ms));
  const [row, quota, plans, settings, keys, grants, days] = await Promise.all([
    tables.get('accounts', account),
    ledger.quota(account),
    tables.scan('plans'),
    tables.scan('settings'),
    pages.rows({ table: 'keys', where: { attribute: 'account', is: account }, limit: keysMax }),
    pages.grants(account, grantsMax),
    rowsIn(ledger.daily(accountId(account), { from: String(from), to: String(to) })),
  ]);
  if (!row && !quota && grants.grants.length === 0 && keys.rows.length === 0)
    throw usageFailure(`nothing is known of a customer ${account}`);
  if (quota && 'problem' in quota) throw new Failure(quota.problem);
  const item = quota?.row ?? emptyQuota(account);
  const reading = row && readRow(AccountRow, row);
  const held = reading && 'row' in reading ? reading.row.plan : undefined;
  const { snapshot } = compileSnapshot(
    { channels: [], charges: [], plans, settings },
    { local: target.local, publishedAt: 0 },
  );
  const facts = { held, counts: item.plan, plans: snapshot.plans, nowMs };
  const plan = snapshot.settings.subscriptionEnabled ? accountPlan(facts) : null;
  return {
    account,
    row: row && knownOf(row),
    isOff: isAccountOff(row),
    item,
    plan,
    keys: keyViewsOf(keys.rows, nowMs),
    hasAllKeys: keys.next === undefined,
    grants: grants.grants,
    hasAllGrants: grants.isAll,
    days: days.rows,
    warnings: [
      ...(row ? [] : [`the table accounts has no row ${account}, so it can hold no plan`]),
      ...(reading && 'problem' in reading ? [`the row in accounts is not used: ${reading.problem}`] : []),
      ...(isAccountOff(row) ? ['it is switched off: every key of it is refused'] : []),
      ...(held && !plan
        ? ['the plan of its row covers nothing now: see since, until, subscription.enabled']
        : []),
      ...(imbalance(item) !== undefined || item.moved !== 0n
        ? ['this account does not balance: see Audit']
        : []),
      ...days.problems,
    ],
  };
}

const knownOf = (row: RawRow): RawRow =>
  Object.fromEntries(
    Object.entries(row).filter(([name]) => name.startsWith('_') || Object.hasOwn(AccountRow.shape, name)),
  );
