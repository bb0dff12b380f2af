import { AccountRow } from '../../config/rows/account-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { readSetting } from '../../config/compile/read-setting.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import { findAccount } from './find-account.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import type { RawRow } from '../row-tables.ts';
import { remark, say } from '../../../infra/ops/cli/terminal/terminal.ts';

export interface PlanOptions {
  level?: number;
  since?: string;
  until?: string;
  none?: boolean;
  new?: boolean;
}

/** Writes the plan of an account's row, or takes it away; all else of the row stays. */
export async function setPlan(
  session: Session,
  account: string,
  options: PlanOptions,
  nowMs: number,
): Promise<void> {
  const { level, since, until, none } = options;
  if ((none === true) === (level !== undefined)) throw usageFailure('give either --level or --none');
  if (none && (since !== undefined || until !== undefined))
    throw usageFailure('--none takes neither --since nor --until');
  const row = await findAccount(session, account, options.new);
  const plan = none ? undefined : planOf(row, options, nowMs);
  const reading = readRow(AccountRow, { account, ...(plan && { plan }) });
  if ('problem' in reading) throw usageFailure(`nothing was written: ${reading.problem}`);
  const held = reading.row.plan;
  if (held?.until !== undefined && held.until <= held.since)
    throw usageFailure('nothing was written: --until must be after --since');

  if (!(await session.tables.update('accounts', account, { plan })))
    throw new Failure('the row is gone: somebody deleted it meanwhile');
  if (!plan) return say(`${account} holds no plan; live within 30 seconds.`);
  const end = until === undefined ? 'without an end' : `until ${until}`;
  say(`${account} holds plan ${level}, months counted from ${plan.since}, ${end}; live within 30 seconds.`);
  await warn(session, String(level));
}

/** Months go on as they were, so that a change of level in mid-month gives nobody a second month. */
function planOf(row: RawRow, { level, since, until }: PlanOptions, nowMs: number) {
  const reading = readRow(AccountRow, row);
  const held = 'row' in reading && reading.row.plan ? (row['plan'] as RawRow)['since'] : undefined;
  const today = new Date(nowMs).toISOString().slice(0, 10);
  return {
    level,
    since: since ?? (typeof held === 'string' ? held : today),
    ...(until !== undefined && { until }),
  };
}

async function warn(session: Session, level: string): Promise<void> {
  const plans = await session.tables.scan('plans');
  if (!plans.some((plan) => String(plan['level']) === level))
    remark(`warning: the table plans has no level ${level}, so this plan covers nothing`);
  const setting = await session.tables.get('settings', 'subscription.enabled');
  const reading = setting && readSetting(setting);
  if (!reading || !('row' in reading) || reading.row.subscriptionEnabled !== true)
    remark('warning: the setting subscription.enabled is not true, so plans cover nothing');
}
