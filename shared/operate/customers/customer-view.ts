/**
 * View: one customer on one page: balance, plan, keys, the last grants, use by day and model. `customer show`
 * and the console's page render it. Every read is bounded, however old the account is: at most 11 requests.
 */
import { buildAutoTopUpId, type AutoTopUp } from '../../billing/auto-top-up.ts';
import { dayOf, grantsModel, modelOf } from '../../billing/daily-keys.ts';
import { describePlan } from '../../billing/reservation.ts';
import { createQuotaItem, findImbalance } from '../../billing/quota-item.ts';
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { plainValue, readRow } from '../../config/rows/read-row.ts';
import { utcDay, dayMs } from '../../wire/iso-time.ts';
import { compareCodeUnits, listTexts } from '../../wire/json.ts';
import { compileSettings } from '../config/row-changes.ts';
import { keyViewsOf } from '../keys/list-keys.ts';
import { compareCharges, readingsOf, sumBy, sumOfFigures, type Summed } from '../ledger/ledger.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { Failure, formatWrittenMoney, usageFailure } from '../plan.ts';
import { hideInvalidAmount } from './grants.ts';

/** Amounts of `item` and `use` are nano-yuan, those of grants yuan as they were written. */
export type CustomerView = Awaited<ReturnType<typeof viewCustomer>>;

const keysMax = 100;
const grantsMax = 20;

export async function viewCustomer(ports: OperatorPorts, account: string) {
  const { clock, ledger, pages, tables } = ports;
  const nowMs = clock.now();
  const [row, auto, quota, { plans, settings }, keys, { grants, isAll }, use] = await Promise.all([
    tables.get('accounts', account),
    tables.get('runtime', buildAutoTopUpId(account)),
    ledger.quota(account),
    compileSettings(ports),
    pages.rows({ table: 'keys', where: { attribute: 'account', is: account }, limit: keysMax }),
    pages.grants(account, grantsMax),
    viewCustomerUse(ports, account),
  ]);
  const hasAllKeys = keys.next === undefined;
  if (!row && !quota && grants.length === 0 && keys.rows.length === 0)
    throw usageFailure(
      `no customer ${account}: see \`customer list\`${hasAllKeys ? '' : '; not all keys were checked'}`,
    );
  if (quota && 'problem' in quota) throw new Failure(quota.problem);
  const item = quota?.row ?? createQuotaItem(account);
  const reading = row && readRow(AccountRow, row);
  const subscription = reading && 'row' in reading ? reading.row.plan : undefined;
  const facts = { subscription, counts: item.plan, plans, nowMs };
  const plan = settings.subscriptionEnabled ? describePlan(facts) : null;
  const warnings = listTexts(
    !row && `the table accounts has no row ${account}, so this customer can't have a plan`,
    reading && 'problem' in reading && `the account row is invalid: ${reading.problem}`,
    grants.length > 0 &&
      keys.rows.length === 0 &&
      hasAllKeys &&
      'it has grants, but no key, so nobody can spend them',
    isAccountOff(row) && 'this customer is disabled; all its keys are rejected',
    subscription &&
      !plan &&
      'the plan covers nothing now: check since, until and the setting subscription.enabled',
    (findImbalance(item) !== undefined || item.moved !== 0n) &&
      'the balance of this customer does not add up: run an audit',
    ...use.problems,
  );
  const attributes = Object.entries(row ?? {}).filter(([name]) => Object.hasOwn(shown, name));
  return {
    account,
    isOff: isAccountOff(row),
    item,
    plan,
    attributes: {
      ...Object.fromEntries(attributes.map(([name, value]) => [name, plainValue(value)])),
      // The cast is safe: only functions write the item.
      ...(auto && { stored_card: describeCard(auto as unknown as AutoTopUp) }),
    },
    written: { _by: row?.['_by'], _at: row?.['_at'] },
    keys: keyViewsOf(keys.rows, nowMs),
    hasAllKeys,
    grants: grants.map(hideInvalidAmount),
    hasAllGrants: isAll,
    use,
    warnings,
  };
}

/** The state of automatic top-ups, without the ids of the card. */
function describeCard({ terms, off, month, charged }: AutoTopUp): string {
  const used = month === '' ? '' : `; ${formatWrittenMoney(charged / 100)} in ${month}`;
  if (!terms) return `none${off === undefined ? '' : `: ${off}`}${used}`;
  const { below, amount, monthly } = terms;
  const [more, least, most] = [amount, below, monthly].map((fen) => formatWrittenMoney(fen / 100));
  return `${more} below ${least}, at most ${most} a month${used}`;
}

/** The attributes of which nothing else in the view is made. Others are not shown: one may be a secret in a wrong attribute. */
const { account: _, plan: __, enabled: ___, ...shown } = AccountRow.shape;

export const useDays = 30;
/** Some 350 bytes each: 30 days of 66 models, or a week of 285. */
const sumsMax = 2000;

/** A customer's calls and charges of the last UTC days, from the sums of `daily`, in one bounded read. */
async function viewCustomerUse({ clock, pages }: OperatorPorts, account: string) {
  const nowMs = clock.now();
  const wanted = utcDay(nowMs - (useDays - 1) * dayMs);
  const { days, isAll } = await pages.days(account, wanted, sumsMax);
  const { rows, problems } = readingsOf(days);
  const last = rows.at(-1);
  // If more sums exist than were read, the oldest day may be incomplete, so drop it.
  const cut = isAll || !last ? undefined : dayOf(last.key);
  const sums = rows.filter(({ key }) => dayOf(key) !== cut);
  const calls = sums.filter((sum) => modelOf(sum) !== grantsModel);
  return {
    from: cut === undefined ? wanted : utcDay(Date.parse(cut) + dayMs),
    to: utcDay(nowMs),
    isWhole: isAll,
    sum: sumOfFigures(sums),
    days: sumBy(calls, ({ key }) => dayOf(key)).toSorted(compareNames),
    models: sumBy(calls, modelOf).toSorted((a, b) => compareCharges(a, b) || compareNames(a, b)),
    problems,
  };
}

const compareNames = (a: Summed, b: Summed): number => compareCodeUnits(a.name, b.name);
