/** Sets or removes the plan in an account's row; other attributes stay. `carryOutWrites` carries it out. */
import { readSetting } from '../../config/compile/read-setting.ts';
import { AccountRow } from '../../config/rows/account-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { refuseChanged } from '../config/row-mark.ts';
import { Failure, usable, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RawRow, RowWrite } from '../row-tables.ts';
import { findAccount } from '../find-account.ts';
import { utcDay } from '../../wire/iso-time.ts';

export interface SetPlanInput {
  account: string;
  level?: number | undefined;
  /** ISO 8601. */
  since?: string | undefined;
  until?: string | undefined;
  /** Remove the plan. */
  none?: boolean | undefined;
  /** Create the account if it does not exist. */
  new?: boolean | undefined;
  /** `rowMark` of the plan as it was looked at. Absent: it is not compared. */
  seen?: string | undefined;
}

/** A plan as stored in the row. */
interface WrittenPlan {
  level: number;
  since: string;
  until?: string;
}

export interface SetPlanPlan extends Plan<RowWrite> {
  account: string;
  /** Undefined: the plan is removed. */
  plan: WrittenPlan | undefined;
  /** Reasons why the plan will cover no calls. */
  warnings: string[];
}

export async function planSetPlan(ports: OperatorPorts, input: SetPlanInput): Promise<SetPlanPlan> {
  const { account, level, since, until, none, seen } = input;
  if ((none === true) === (level !== undefined)) throw usageFailure('give either --level or --none');
  if (none && (since !== undefined || until !== undefined))
    throw usageFailure('--none takes neither --since nor --until');
  const found = await findAccount(ports, account, input.new);
  refuseChanged(`the plan of ${account}`, found.row['plan'], seen);
  const plan =
    level === undefined
      ? undefined
      : { level, since: since ?? sinceOf(found.row, ports), ...(until !== undefined && { until }) };
  const reading = readRow(AccountRow, { account, ...(plan && { plan }) });
  const held = usable(reading, 'nothing was written: ').row.plan;
  if (held?.until !== undefined && held.until <= held.since)
    throw usageFailure('nothing was written: --until must be after --since');
  const update: RowWrite = {
    kind: 'update',
    table: 'accounts',
    key: { account },
    attributes: { plan },
    unchanged: { plan: found.row['plan'] },
    conflict: new Failure(
      `somebody else changed the plan of ${account} meanwhile, or deleted its row: look at it again, then repeat`,
    ),
  };
  return {
    changes: [...found.changes, update],
    effect: [
      ...found.effect,
      plan ? `account ${account} holds plan ${plan.level}` : `account ${account} holds no plan`,
    ],
    questions: questionsOf(account, found.row, held),
    account,
    plan,
    warnings: plan ? await warningsOf(ports, plan.level) : [],
  };
}

/** Asks where the account gets less: no plan, a lower level or an earlier end than now. */
function questionsOf(account: string, row: RawRow, held: AccountRow['plan']): string[] {
  if (row['plan'] === undefined) return [];
  if (!held) return [`End the plan of account ${account}?`];
  const reading = readRow(AccountRow, { account, plan: row['plan'] });
  const before = 'row' in reading ? reading.row.plan : undefined;
  if (!before) return [];
  const endsEarlier = (held.until ?? Infinity) < (before.until ?? Infinity);
  return held.level < before.level || endsEarlier
    ? [`Cut the plan of account ${account}, to a lower level or an earlier end?`]
    : [];
}

/** Keeps the start of the current plan, so that a change of level in mid-month does not start new counts. */
function sinceOf(row: RawRow, { clock }: OperatorPorts): string {
  const reading = readRow(AccountRow, row);
  const held = 'row' in reading && reading.row.plan ? (row['plan'] as RawRow)['since'] : undefined;
  return typeof held === 'string' ? held : utcDay(clock.now());
}

async function warningsOf({ tables }: OperatorPorts, level: number): Promise<string[]> {
  const [plans, setting] = await Promise.all([
    tables.scan('plans'),
    tables.get('settings', 'subscription.enabled'),
  ]);
  const reading = setting && readSetting(setting);
  const isEnabled = reading && 'row' in reading && reading.row.subscriptionEnabled === true;
  return [
    ...(plans.some((plan) => String(plan['level']) === String(level))
      ? []
      : [`the table plans has no level ${level}, so this plan covers nothing`]),
    ...(isEnabled ? [] : ['the setting subscription.enabled is not true, so plans cover nothing']),
  ];
}
