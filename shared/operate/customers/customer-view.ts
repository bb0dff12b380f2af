/**
 * View: one customer on one page: balance, plan, keys, the last grants, use by day and model. `customer show`, `account show`
 * and the console's page render it. Every read is bounded, however long the customer has been one: at most 10 requests.
 */
import type { WrittenGrant } from '../../billing/grant.ts';
import { accountPlan } from '../../billing/plans/account-plan.ts';
import type { WholeAccount } from '../../billing/parts/whole.ts';
import { emptyQuota, imbalance } from '../../billing/quota-item.ts';
import { compileSnapshot } from '../../config/compile/compile-snapshot.ts';
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { plainValue, readRow } from '../../config/rows/read-row.ts';
import type { AccountPlan } from '../../wire/public/account.ts';
import { keyViewsOf, type KeyView } from '../keys/list-keys.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';
import { viewCustomerUse, type CustomerUse } from './customer-use.ts';

/** Amounts of `item` and `use` are nano-yuan, those of grants yuan as they were written. */
export interface CustomerView {
  account: string;
  /** All its keys are refused. */
  isOff: boolean;
  /** The sums over the account's parts. */
  item: WholeAccount;
  /** The plan that covers calls now, with its counts; times in Unix seconds. null: no plan does. */
  plan: AccountPlan | null;
  /**
   * Note, contact and limits, as written in its row. What the table does not have is left out: it may be a secret in a wrong
   * attribute.
   */
  attributes: RawRow;
  /** Who wrote the row, and when, as it says. */
  written: Pick<RawRow, '_by' | '_at'>;
  /** At most 100, sorted by hint. */
  keys: KeyView[];
  /** False: the table of keys goes on after what was looked at. */
  hasAllKeys: boolean;
  /** At most 20, the last ids first. */
  grants: WrittenGrant[];
  hasAllGrants: boolean;
  use: CustomerUse;
  warnings: string[];
}

const keysMax = 100;
const grantsMax = 20;

export async function viewCustomer(
  ports: Pick<OperatorPorts, 'clock' | 'ledger' | 'pages' | 'tables' | 'target'>,
  account: string,
): Promise<CustomerView> {
  const { clock, ledger, pages, tables, target } = ports;
  const nowMs = clock.now();
  const [row, quota, plans, settings, keys, { grants, isAll }, use] = await Promise.all([
    tables.get('accounts', account),
    ledger.quota(account),
    tables.scan('plans'),
    tables.scan('settings'),
    pages.rows({ table: 'keys', where: { attribute: 'account', is: account }, limit: keysMax }),
    pages.grants(account, grantsMax),
    viewCustomerUse(ports, account),
  ]);
  const hasAllKeys = keys.next === undefined;
  if (!row && !quota && grants.length === 0 && keys.rows.length === 0)
    throw usageFailure(
      `nothing is known of an account ${account}: see \`customer list\`${hasAllKeys ? '' : '; not all keys were looked at'}`,
    );
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
  const warnings = [
    !row && `the table accounts has no row ${account}, so it can hold no plan`,
    reading && 'problem' in reading && `the row in accounts is not used: ${reading.problem}`,
    grants.length > 0 &&
      keys.rows.length === 0 &&
      hasAllKeys &&
      'it has grants, but no key, so nobody can spend them',
    isAccountOff(row) && 'it is switched off: every key of it is refused',
    held && !plan && 'the plan of its row covers nothing now: see since, until, subscription.enabled',
    (imbalance(item) !== undefined || item.moved !== 0n) && 'this account does not balance: see the audit',
    ...use.problems,
  ];
  return {
    account,
    isOff: isAccountOff(row),
    item,
    plan,
    attributes: attributesOf(row ?? {}),
    written: { _by: row?.['_by'], _at: row?.['_at'] },
    keys: keyViewsOf(keys.rows, nowMs),
    hasAllKeys,
    grants,
    hasAllGrants: isAll,
    use,
    warnings: warnings.filter((each) => typeof each === 'string'),
  };
}

/** Those of which nothing else in the view is made. */
const { account: _, plan: __, enabled: ___, ...shown } = AccountRow.shape;

const attributesOf = (row: RawRow): RawRow =>
  Object.fromEntries(
    Object.entries(row)
      .filter(([name]) => Object.hasOwn(shown, name))
      .map(([name, value]) => [name, plainValue(value)]),
  );
