/** Prints grants and plans that were written. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import type { GrantMade, GrantPlan } from '../../../../shared/operate/accounts/grant-amount.ts';
import type { SetPlanPlan } from '../../../../shared/operate/accounts/set-plan.ts';
import type { RowWrite } from '../../../../shared/operate/row-tables.ts';
import type { Terminal } from '../terminal/terminal.ts';

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
