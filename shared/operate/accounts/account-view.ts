import { compareCodeUnits } from '../../wire/canonical-json.ts';
import { formatYuan } from '../../billing/amount.ts';
import { emptyQuota, imbalance, reservedOf, type QuotaItem } from '../../billing/quota-item.ts';
import { AccountRow } from '../../config/rows/account-row.ts';
import { compileSnapshot } from '../../config/compile/compile-snapshot.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { accountPlan } from '../../relay/account/account-balance.ts';
import type { AccountPlan } from '../../wire/account.ts';
import type { WrittenGrant } from '../ledger-reader.ts';
import { Failure } from '../operator-failure.ts';
import { judgeKey } from '../keys/key-state.ts';
import { isoTime } from '../../wire/iso-time.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import type { RawRow } from '../row-tables.ts';
import { remark, say, sayColumns, sayJson } from '../../../infra/ops/cli/terminal/terminal.ts';

const grantsShown = 5;

/** All that the tables say of an account. */
export async function showAccount(session: Session, account: string, nowMs: number): Promise<void> {
  const { tables, ledger } = session;
  const [raw, quota, plans, settings, keys] = await Promise.all([
    tables.get('accounts', account),
    ledger.quota(account),
    tables.scan('plans'),
    tables.scan('settings'),
    tables.scan('keys'),
  ]);
  const grants: WrittenGrant[] = [];
  for await (const page of ledger.grants(account)) grants.push(...page);
  const own = keys.filter((key) => key['account'] === account);
  if (!raw && !quota && grants.length === 0 && own.length === 0)
    throw new Failure(`nothing is known of an account ${account}`);
  if (quota && 'problem' in quota) throw new Failure(quota.problem);

  const item = quota?.row ?? emptyQuota(account);
  const reading = raw && readRow(AccountRow, raw);
  const rows = { channels: [], charges: [], plans, settings };
  const { snapshot } = compileSnapshot(rows, { local: session.target.local, publishedAt: 0 });
  const row = reading && 'row' in reading ? reading.row : undefined;
  const facts = { item, plan: accountPlan(row, item, snapshot, nowMs), keys: own, grants, nowMs };
  if (session.json) sayJson(asJson(account, facts));
  else sayFacts(account, facts);
  if (!raw) remark(`warning: the table accounts has no row ${account}, so it can hold no plan`);
  if (reading && 'problem' in reading) remark(`warning: the row in accounts is not used: ${reading.problem}`);
  else if (row?.plan && !facts.plan)
    remark('warning: the plan of its row covers nothing now: see since, until, and subscription.enabled');
  if (imbalance(item) !== undefined) remark('warning: this account does not balance: see `audit`');
}

interface Facts {
  item: QuotaItem;
  plan: AccountPlan | null;
  keys: RawRow[];
  grants: WrittenGrant[];
  nowMs: number;
}

function asJson(account: string, { item, plan, keys, grants, nowMs }: Facts) {
  return {
    account,
    available: formatYuan(item.available),
    reserved: formatYuan(reservedOf(item)),
    spent: formatYuan(item.spent),
    granted: formatYuan(item.granted),
    open: item.open.size,
    settled: item.settled,
    plan,
    keys: keys.map((key) => ({ hint: key['hint'], hash: key['hash'], state: judgeKey(key, nowMs).state })),
    grants,
  };
}

function sayFacts(account: string, { item, plan, keys, grants, nowMs }: Facts): void {
  say(`account ${account}`);
  sayColumns([
    ['  available', `${formatYuan(item.available)} yuan`],
    ['  reserved', `${formatYuan(reservedOf(item))} yuan, for ${item.open.size} calls under way`],
    ['  spent', `${formatYuan(item.spent)} yuan, ${item.settled} calls`],
    ['  granted', `${formatYuan(item.granted)} yuan`],
    ['  plan', plan ? planWords(plan) : 'none'],
    ...(plan?.items ?? []).map((entry) => [
      '',
      `${entry.name}: ${entry.used} of ${entry.value < 0 ? 'unlimited' : entry.value} calls, resets ${isoTime(entry.resets_at * 1000)}`,
    ]),
    ...keys.map((key, at) => [at === 0 ? '  keys' : '', keyWords(key, nowMs)]),
    ...grants
      .toSorted((a, b) => compareCodeUnits(b.grantId, a.grantId))
      .slice(0, grantsShown)
      .map((grant, at) => [at === 0 ? '  grants' : '', grantWords(grant)]),
  ]);
  if (grants.length > grantsShown) remark(`${grants.length} grants in all: see the table grants, or --json`);
}

const planWords = ({ level, until }: AccountPlan): string =>
  `level ${level}${until === null ? '' : `, until ${isoTime(until * 1000)}`}`;

const keyWords = (key: RawRow, nowMs: number): string =>
  `${typeof key['hint'] === 'string' ? key['hint'] : '-'} (hash ${String(key['hash']).slice(0, 12)}): ${judgeKey(key, nowMs).state}`;

function grantWords({ grantId, amount, applied, problem }: WrittenGrant): string {
  if (problem !== undefined) return `${grantId}: ${amount} yuan, not used: ${problem}`;
  return `${grantId}: ${amount} yuan, ${applied === undefined ? 'not applied yet' : `applied ${applied}`}`;
}
