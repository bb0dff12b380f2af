/** Changes attributes of an account's row that are not its plan: note, contact, limits, the switch. */
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { readAlertedAccount } from '../../config/rows/alerted-account.ts';
import { readRow, textOf } from '../../config/rows/read-row.ts';
import { refuseChanged, findAccount } from '../rows.ts';
import { Failure, usable, usageFailure, type Plan, shellWord } from '../plan.ts';
import type { OperatorPorts, RawRow, RowWrite } from '../operator-ports.ts';
import { readSetting } from '../../config/setting-rows.ts';
import { utcDay, isoTime } from '../../wire/iso-time.ts';
import { formatYuan, type NanoYuan } from '../../billing/amount.ts';
import { emptyQuota, reservedOf } from '../../billing/quota-item.ts';
import { listKeys } from '../keys/list-keys.ts';

interface AccountEdit {
  account: string;
  /** An undefined attribute is removed; others stay. */
  attributes: RawRow;
  /** `rowMark` of the row as it was looked at. Absent: it is not compared. */
  seen?: string | undefined;
}

/** `carryOutWrites` carries it out. It fails if somebody else changed one of these attributes meanwhile. */
export async function planEditAccount(
  { tables, target }: Pick<OperatorPorts, 'tables' | 'target'>,
  { account, attributes, seen }: AccountEdit,
): Promise<Plan<RowWrite>> {
  const row = await tables.get('accounts', account);
  if (!row) throw usageFailure(`there is no account ${account}`);
  refuseChanged(`account ${account}`, row, seen);
  const changed = Object.fromEntries(
    Object.entries(attributes).filter(([name, value]) => !isSame(row[name], value)),
  );
  const after = withoutUndefined({ ...row, ...changed });
  usable(readRow(AccountRow, after));
  usable(readAlertedAccount(after, target));
  const names = Object.keys(changed);
  const isDisabled = changed['enabled'] === false;
  const isEnabled = isAccountOff(row) && !isAccountOff(after);
  const unchanged = Object.fromEntries(names.map((name) => [name, row[name]]));
  const conflict = new Failure('somebody else changed the row meanwhile: look at it again, then repeat');
  return {
    changes:
      names.length === 0
        ? []
        : [{ kind: 'update', table: 'accounts', key: { account }, attributes: changed, unchanged, conflict }],
    effect:
      names.length === 0
        ? ['nothing to write: the row is like this already']
        : [
            `account ${account}: ${names.flatMap((name) => shown(name, after[name])).join(', ')}; live within 30 seconds`,
            ...(isDisabled ? [`every key of ${account} is refused within 30 seconds`] : []),
            ...(isEnabled ? [`calls of ${account}, which are refused now, are answered again`] : []),
          ],
    questions: isDisabled ? [`Refuse every call of ${account}?`] : [],
  };
}

/** Without notes of the tool itself. */
const shown = (name: string, value: unknown): string[] =>
  name.startsWith('_') ? [] : [value === undefined ? `no ${name}` : `${name} ${JSON.stringify(value)}`];

const withoutUndefined = (row: RawRow): RawRow =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);

// Sets or removes the plan in an account's row; other attributes stay. `carryOutWrites` carries it out.

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

// Closes an account: all its keys are refused, and says what is left of the balance. Rows and ledger stay, so that statements
// can be made later. `carryOutWrites` carries it out.

export interface CloseAccountPlan extends Plan<RowWrite> {
  account: string;
  available: NanoYuan;
  /** What calls under way still hold. */
  reserved: NanoYuan;
  /** Keys that are refused from then on. */
  keys: number;
  /** What to do about the balance, in order. */
  next: string[];
}

export async function planCloseAccount(ports: OperatorPorts, account: string): Promise<CloseAccountPlan> {
  const { tables, ledger, clock } = ports;
  const [row, quota, all] = await Promise.all([
    tables.get('accounts', account),
    ledger.quota(account),
    listKeys(ports, { account }),
  ]);
  if (!row) throw usageFailure(`there is no account ${account}: see \`customer list\``);
  if (quota && 'problem' in quota) throw new Failure(quota.problem);
  const item = quota?.row ?? emptyQuota(account);
  const [available, reserved] = [item.available, reservedOf(item)];
  const keys = all.filter((each) => each.row['enabled'] !== false).map((each) => textOf(each.row, 'hash'));
  const isClosed = row['enabled'] === false && keys.length === 0;
  const today = isoTime(clock.now()).slice(0, 10);
  const next = nextSteps({ account, available, reserved }, { today, isClosed });
  const off = { enabled: false };
  const gone = new Failure(`the row of ${account} is gone: somebody deleted it meanwhile`);
  return {
    changes: isClosed
      ? []
      : [
          {
            kind: 'update',
            table: 'accounts',
            key: { account },
            attributes: { ...off, _closed: isoTime(clock.now()) },
            unchanged: {},
            conflict: gone,
          },
          ...keys.map((hash): RowWrite => ({
            kind: 'update',
            table: 'keys',
            key: { hash },
            attributes: off,
            unchanged: {},
          })),
        ],
    effect: isClosed
      ? [`account ${account} is closed already`, ...next]
      : [
          `account ${account} and its keys (${keys.length}) are refused within 30 seconds; no row is deleted`,
          `${formatYuan(available)} yuan are left${reserved > 0n ? `, and calls under way hold ${formatYuan(reserved)} more` : ''}`,
        ],
    questions: isClosed ? [] : [`Close account ${account}?`],
    account,
    available,
    reserved,
    keys: keys.length,
    next,
  };
}

/**
 * Environments let calls in for half a minute more, and calls under way return what they do not use: only then is it sure
 * what is left. The id is of a day, since an account may be opened and closed again.
 */
function nextSteps(
  { account, available, reserved }: Pick<CloseAccountPlan, 'account' | 'available' | 'reserved'>,
  { today, isClosed }: { today: string; isClosed: boolean },
): string[] {
  const isSure = isClosed && reserved === 0n;
  const wait = `wait a minute${reserved > 0n ? ', until no call is under way,' : ''} and repeat \`customer close ${shellWord(account)}\`: it says what is left then`;
  if (isSure ? available <= 0n : available + reserved <= 0n) return [];
  if (reserved > 0n) return [wait];
  return [
    ...(isSure ? [] : [wait]),
    `pay the customer ${formatYuan(available)} yuan, by the way they paid`,
    `account grant ${shellWord(account)} -${formatYuan(available)} --id closed-${today} --reason "paid back"`,
  ];
}
