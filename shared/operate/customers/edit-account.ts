/**
 * Changes an account's row: note, contact, limits, the switch; its plan; and closes it. Rows and ledger of a closed account stay,
 * so that statements can be made later. `carryOutWrites` carries the plans out.
 */
import { formatYuan, type NanoYuan } from '../../billing/price.ts';
import { emptyQuota, reservedOf } from '../../billing/quota-item.ts';
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { readAlertedAccount } from '../../config/rows/alerted-account.ts';
import { readRow, textOf } from '../../config/rows/read-row.ts';
import { isoTime, utcDay } from '../../wire/iso-time.ts';
import { settingsNow } from '../config/row-changes.ts';
import { listKeys } from '../keys/list-keys.ts';
import type { OperatorPorts, RawRow, RowWrite } from '../operator-ports.ts';
import { withMoments } from '../moment.ts';
import { Failure, shellWord, usable, usageFailure, type Plan } from '../plan.ts';
import { findAccount, refuseChanged, updateOf, withAttributes } from '../rows.ts';

interface AccountEdit {
  account: string;
  attributes: RawRow;
  seen?: string | undefined;
  /** It may be made. */
  isNew?: boolean;
}

/**
 * It fails if somebody else changed one of these attributes meanwhile.
 * @param attributes an undefined one is removed; others stay
 * @param seen `rowMark` of the row as it was looked at. Absent: it is not compared
 */
export async function planEditAccount(
  ports: OperatorPorts,
  { account, attributes, seen, isNew = false }: AccountEdit,
): Promise<Plan<RowWrite>> {
  const found = await findAccount(ports, account, isNew);
  const { row } = found;
  refuseChanged(`account ${account}`, row, seen);
  const after = withAttributes(row, attributes);
  usable(readRow(AccountRow, after));
  usable(readAlertedAccount(after, ports.target));
  const [made] = found.changes;
  if (made) {
    const conflict = new Failure(`somebody else made account ${account} meanwhile`);
    return {
      changes: [{ kind: 'create', table: 'accounts', row: after, conflict }],
      effect: found.effect,
      questions: [],
    };
  }
  const changes = updateOf({ table: 'accounts', key: { account }, row }, attributes);
  if (changes.length === 0)
    return { changes, effect: ['nothing to write: the row is like this already'], questions: [] };
  const isOff = isAccountOff(after);
  const isDisabled = isOff && !isAccountOff(row);
  const changed = changes.flatMap((write) => (write.kind === 'update' ? Object.keys(write.attributes) : []));
  // Without notes of the tool itself.
  const shown = changed
    .filter((name) => !name.startsWith('_'))
    .map((name) => (after[name] === undefined ? `no ${name}` : `${name} ${JSON.stringify(after[name])}`));
  return {
    changes,
    effect: [
      `account ${account}: ${shown.join(', ')}; live within 30 seconds`,
      ...(isDisabled ? [`every key of ${account} is refused within 30 seconds`] : []),
      ...(isAccountOff(row) && !isOff
        ? [`calls of ${account}, which are refused now, are answered again`]
        : []),
    ],
    questions: isDisabled ? [`Refuse every call of ${account}?`] : [],
  };
}

export interface SetPlanInput {
  account: string;
  level?: number | undefined;
  since?: string | undefined;
  until?: string | undefined;
  none?: boolean | undefined;
  new?: boolean | undefined;
  /** `rowMark` of the plan as it was looked at. Absent: it is not compared. */
  seen?: string | undefined;
}

/** `plan`: as stored in the row; undefined: it is removed. `warnings`: why the plan will cover no calls. */
export type SetPlanPlan = Awaited<ReturnType<typeof planSetPlan>>;

/** Sets or removes the plan; other attributes stay. */
export async function planSetPlan(ports: OperatorPorts, input: SetPlanInput) {
  const { account, level, since, until, none, seen } = withMoments(input, ports.clock.now());
  if ((none === true) === (level !== undefined)) throw usageFailure('give either --level or --none');
  if (none && (since !== undefined || until !== undefined))
    throw usageFailure('--none takes neither --since nor --until');
  const { row, changes, effect } = await findAccount(ports, account, input.new);
  const written = row['plan'];
  refuseChanged(`the plan of ${account}`, written, seen);
  const former = planIn({ account, plan: written });
  // A change of level in mid-month keeps the start, so that no new counts begin.
  const kept = former ? (written as RawRow)['since'] : undefined;
  const begins = since ?? (typeof kept === 'string' ? kept : utcDay(ports.clock.now()));
  const plan =
    level === undefined ? undefined : { level, since: begins, ...(until !== undefined && { until }) };
  const reading = readRow(AccountRow, { account, ...(plan && { plan }) });
  const held = usable(reading, 'nothing was written: ').row.plan;
  if (held?.until !== undefined && held.until <= held.since)
    throw usageFailure('nothing was written: --until must be after --since');
  const conflict = new Failure(
    `somebody else changed the plan of ${account} meanwhile, or deleted its row: look at it again, then repeat`,
  );
  const set = { attributes: { plan }, unchanged: { plan: written }, conflict };
  changes.push({ kind: 'update', table: 'accounts', key: { account }, ...set });
  // Asks where the account gets less: no plan, a lower level or an earlier end than now.
  const isCut =
    held && former && (held.level < former.level || (held.until ?? Infinity) < (former.until ?? Infinity));
  return {
    changes,
    effect: [
      ...effect,
      plan ? `account ${account} holds plan ${plan.level}` : `account ${account} holds no plan`,
    ],
    questions: [
      ...(written !== undefined && !held ? [`End the plan of account ${account}?`] : []),
      ...(isCut ? [`Cut the plan of account ${account}, to a lower level or an earlier end?`] : []),
    ],
    account,
    plan,
    warnings: plan ? await planWarnings(ports, plan.level) : [],
  };
}

function planIn(row: RawRow): AccountRow['plan'] {
  const reading = readRow(AccountRow, row);
  return 'row' in reading ? reading.row.plan : undefined;
}

async function planWarnings(ports: OperatorPorts, level: number): Promise<string[]> {
  const { plans, settings } = await settingsNow(ports);
  const hasLevel = plans.some((plan) => plan.level === level);
  return [
    ...(hasLevel ? [] : [`the table plans has no level ${level}, so this plan covers nothing`]),
    ...(settings.subscriptionEnabled
      ? []
      : ['the setting subscription.enabled is not true, so plans cover nothing']),
  ];
}

/** `reserved`: what calls under way still hold. `next`: what to do about the balance, in order. */
export type CloseAccountPlan = Awaited<ReturnType<typeof planCloseAccount>>;

/** All keys are refused. */
export async function planCloseAccount(ports: OperatorPorts, account: string) {
  const { tables, ledger, clock } = ports;
  const [row, quota, all] = await Promise.all([
    tables.get('accounts', account),
    ledger.quota(account),
    listKeys(ports, { account }),
  ]);
  if (!row) throw usageFailure(`there is no account ${account}: see \`customer list\``);
  if (quota && 'problem' in quota) throw new Failure(quota.problem);
  const item = quota?.row ?? emptyQuota(account);
  const { available } = item;
  const reserved = reservedOf(item);
  const keys = all.filter((each) => each.row['enabled'] !== false).map((each) => textOf(each.row, 'hash'));
  const isClosed = row['enabled'] === false && keys.length === 0;
  const now = isoTime(clock.now());
  const next = nextSteps({ account, available, reserved, today: now.slice(0, 10), isClosed });
  const conflict = new Failure(`the row of ${account} is gone: somebody deleted it meanwhile`);
  const off = { kind: 'update', attributes: { enabled: false }, unchanged: {} } as const;
  const closed = { ...off, key: { account }, attributes: { enabled: false, _closed: now }, conflict };
  const changes: RowWrite[] = [
    { ...closed, table: 'accounts' },
    ...keys.map((hash): RowWrite => ({ ...off, table: 'keys', key: { hash } })),
  ];
  const effect = [
    `account ${account} and its keys (${keys.length}) are refused within 30 seconds; no row is deleted`,
    `${formatYuan(available)} yuan are left${reserved > 0n ? `, and calls under way hold ${formatYuan(reserved)} more` : ''}`,
  ];
  return {
    changes: isClosed ? [] : changes,
    effect: isClosed ? [`account ${account} is closed already`, ...next] : effect,
    questions: isClosed ? [] : [`Close account ${account}?`],
    account,
    available,
    reserved,
    keys: keys.length,
    next,
  };
}

interface Closing {
  account: string;
  available: NanoYuan;
  reserved: NanoYuan;
  today: string;
  isClosed: boolean;
}

/**
 * Environments let calls in for half a minute more, and calls under way return what they do not use: only then is it sure
 * what is left. The id is of a day, since an account may be opened and closed again.
 */
function nextSteps({ account, available, reserved, today, isClosed }: Closing): string[] {
  const isSure = isClosed && reserved === 0n;
  const wait = `wait a minute${reserved > 0n ? ', until no call is under way,' : ''} and repeat \`customer close ${shellWord(account)}\`: it says what is left then`;
  if (isSure ? available <= 0n : available + reserved <= 0n) return [];
  if (reserved > 0n) return [wait];
  return [
    ...(isSure ? [] : [wait]),
    `pay the customer ${formatYuan(available)} yuan, by the way they paid`,
    `grant new ${shellWord(account)} -${formatYuan(available)} --id closed-${today} --reason "paid back"`,
  ];
}
