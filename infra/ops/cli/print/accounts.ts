/** Prints accounts, grants and plans. */
import { formatYuan, parseYuan } from '../../../../shared/billing/amount.ts';
import type { WrittenGrant } from '../../../../shared/billing/grant.ts';
import { reservedOf } from '../../../../shared/billing/quota-item.ts';
import type { AccountView } from '../../../../shared/operate/accounts/account-view.ts';
import type { GrantMade, GrantPlan } from '../../../../shared/operate/accounts/grant-amount.ts';
import type { SetPlanPlan } from '../../../../shared/operate/accounts/set-plan.ts';
import type { KeyView } from '../../../../shared/operate/keys/list-keys.ts';
import type { RowWrite } from '../../../../shared/operate/row-tables.ts';
import type { AccountPlan } from '../../../../shared/wire/public/account.ts';
import { compareCodeUnits } from '../../../../shared/wire/canonical-json.ts';
import { isoTime } from '../../../../shared/wire/iso-time.ts';
import type { Terminal } from '../terminal/terminal.ts';
import { hashText, hintText, shortHash } from './keys.ts';

const grantsShown = 5;

export function printAccount(terminal: Terminal, view: AccountView): void {
  if (terminal.format === 'json') terminal.printJson(accountJson(view));
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
    keys: keys.map(({ row, state }) => ({ hint: hintText(row['hint']), hash: hashText(row['hash']), state })),
    grants: grants.map((grant) => Object.assign({}, grant, { amount: amountText(grant) })),
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

/** What stands in the place of an amount, and is none, may be anything. */
const amountText = ({ amount }: WrittenGrant): string => (parseYuan(amount) === undefined ? '?' : amount);

function grantText(grant: WrittenGrant): string {
  const { grantId, applied, problem } = grant;
  const amount = amountText(grant);
  if (problem !== undefined) return `${grantId}: ${amount} yuan, not used: ${problem}`;
  return `${grantId}: ${amount} yuan, ${applied === undefined ? 'not applied yet' : `applied ${applied}`}`;
}

export function printGrant(
  { print, remark }: Terminal,
  { account, grantId, amount }: GrantPlan,
  { made, isApplied, available }: GrantMade,
): void {
  if (isWritten(made)) print(`grant ${grantId} of ${formatYuan(amount)} yuan is written.`);
  else remark(`grant ${grantId} was written before; nothing is written again`);
  if (!isApplied) return remark('Not applied yet. It will be within minutes: see `account show`.');
  const balance = available === undefined ? '' : `${formatYuan(available)} yuan are available now`;
  print(`It is applied. ${account}: ${balance}.`);
}

/** An earlier run may have written it. */
const isWritten = (made: RowWrite[]): boolean => made.some(({ table }) => table === 'grants');

/** `written` false: an earlier run wrote it. `available`: the balance afterwards, null where it is not known yet. */
export const grantFacts = ({ account, grantId, amount }: GrantPlan, made: GrantMade | undefined) => ({
  account,
  grant_id: grantId,
  amount: formatYuan(amount),
  ...(made && {
    written: isWritten(made.made),
    applied: made.isApplied,
    available: made.available === undefined ? null : formatYuan(made.available),
  }),
});

export function printPlanSet(terminal: Terminal, { account, plan }: SetPlanPlan): void {
  if (!plan) return terminal.print(`${account} holds no plan; live within 30 seconds.`);
  const end = plan.until === undefined ? 'without an end' : `until ${plan.until}`;
  terminal.print(
    `${account} holds plan ${plan.level}, months counted from ${plan.since}, ${end}; live within 30 seconds.`,
  );
}

export const planFacts = ({ account, plan }: SetPlanPlan) => ({ account, plan: plan ?? null });
