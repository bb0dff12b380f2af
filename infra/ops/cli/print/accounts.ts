/** Prints accounts, grants and plans. */
import { formatYuan, type NanoYuan } from '../../../../shared/billing/amount.ts';
import type { WrittenGrant } from '../../../../shared/billing/grant.ts';
import { reservedOf } from '../../../../shared/billing/quota-item.ts';
import type { AccountView } from '../../../../shared/operate/accounts/account-view.ts';
import type { GrantPlan } from '../../../../shared/operate/accounts/grant-amount.ts';
import type { SetPlanPlan } from '../../../../shared/operate/accounts/set-plan.ts';
import type { KeyView } from '../../../../shared/operate/keys/list-keys.ts';
import type { RowWrite } from '../../../../shared/operate/row-tables.ts';
import type { AccountPlan } from '../../../../shared/wire/public/account.ts';
import { compareCodeUnits } from '../../../../shared/wire/canonical-json.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import type { JsonOption } from '../terminal/option-values.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { hintText, shortHash } from './keys.ts';

const grantsShown = 5;

export function printAccount(terminal: Terminal, view: AccountView, { json }: JsonOption): void {
  if (json) terminal.printJson(accountJson(view));
  else printFacts(terminal, view);
  terminal.warn(view.warnings);
}

function accountJson({ account, item, plan, keys, grants }: AccountView) {
  return {
    account,
    available: formatYuan(item.available),
    reserved: formatYuan(reservedOf(item)),
    spent: formatYuan(item.spent),
    granted: formatYuan(item.granted),
    open: item.open.size,
    settled: item.settled,
    plan,
    keys: keys.map(({ row, state }) => ({ hint: row['hint'], hash: row['hash'], state })),
    grants,
  };
}

function printFacts(terminal: Terminal, { account, item, plan, keys, grants }: AccountView): void {
  terminal.print(`account ${account}`);
  terminal.printTable([
    ['  available', `${formatYuan(item.available)} yuan`],
    ['  reserved', `${formatYuan(reservedOf(item))} yuan, for ${item.open.size} calls under way`],
    ['  spent', `${formatYuan(item.spent)} yuan, ${item.settled} calls`],
    ['  granted', `${formatYuan(item.granted)} yuan`],
    ['  plan', plan ? planText(plan) : 'none'],
    ...(plan?.items ?? []).map((entry) => [
      '',
      `${entry.name}: ${entry.used} of ${entry.value < 0 ? 'unlimited' : entry.value} calls, resets ${isoTime(entry.resets_at * 1000)}`,
    ]),
    ...keys.map((key, at) => [at === 0 ? '  keys' : '', keyText(key)]),
    ...grants
      .toSorted((a, b) => compareCodeUnits(b.grantId, a.grantId))
      .slice(0, grantsShown)
      .map((grant, at) => [at === 0 ? '  grants' : '', grantText(grant)]),
  ]);
  if (grants.length > grantsShown)
    terminal.remark(`${grants.length} grants in all: see the table grants, or --json`);
}

const planText = ({ level, until }: AccountPlan): string =>
  `level ${level}${until === null ? '' : `, until ${isoTime(until * 1000)}`}`;

const keyText = ({ row, state }: KeyView): string =>
  `${hintText(row['hint'])} (hash ${shortHash(row['hash'])}): ${state}`;

function grantText({ grantId, amount, applied, problem }: WrittenGrant): string {
  if (problem !== undefined) return `${grantId}: ${amount} yuan, not used: ${problem}`;
  return `${grantId}: ${amount} yuan, ${applied === undefined ? 'not applied yet' : `applied ${applied}`}`;
}

/** @param made the writes that were made; the grant's is missing if an earlier run wrote it */
export function printGrant(terminal: Terminal, { grantId, amount }: GrantPlan, made: RowWrite[]): void {
  printNewAccount(terminal, made);
  if (made.some(({ table }) => table === 'grants'))
    terminal.print(`grant ${grantId} of ${formatYuan(amount)} yuan is written.`);
  else terminal.remark(`grant ${grantId} was written before; nothing is written again`);
}

export function printApplied(
  terminal: Terminal,
  { account }: GrantPlan,
  { isApplied, available }: { isApplied: boolean; available?: NanoYuan },
): void {
  if (!isApplied) return terminal.remark('Not applied yet. It will be within minutes: see `account show`.');
  const balance = available === undefined ? '' : `${formatYuan(available)} yuan are available now`;
  terminal.print(`It is applied. ${account}: ${balance}.`);
}

export function printPlanSet(terminal: Terminal, { account, plan }: SetPlanPlan): void {
  if (!plan) return terminal.print(`${account} holds no plan; live within 30 seconds.`);
  const end = plan.until === undefined ? 'without an end' : `until ${plan.until}`;
  terminal.print(
    `${account} holds plan ${plan.level}, months counted from ${plan.since}, ${end}; live within 30 seconds.`,
  );
}

export function printNewAccount({ remark }: Terminal, made: RowWrite[]): void {
  for (const write of made)
    if (write.kind === 'create' && write.table === 'accounts')
      remark(`account ${String(write.row['account'])} is new`);
}
