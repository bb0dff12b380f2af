/** Changes an account's row: note, contact, limits, the switch, and its plan. `carryOutWrites` carries the plans out. */
import { findAccountWarnings } from '../../config/loss-warnings.ts';
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { readAlertedAccount } from '../../config/rows/alerted-account.ts';
import { readRow, textOf } from '../../config/rows/read-row.ts';
import { utcDay } from '../../wire/iso-time.ts';
import { isRecord, listTexts } from '../../wire/json.ts';
import { compileRows, compileSettings } from '../config/row-changes.ts';
import type { OperatorPorts, RawRow, RowWrite } from '../operator-ports.ts';
import { normalizeMoments } from '../moment.ts';
import { Failure, requireValid, usageFailure } from '../plan.ts';
import { findAccount, refuseChanged, refuseNaming, updateOf, setAttributes } from '../rows.ts';

interface AccountEdit {
  account: string;
  attributes: RawRow;
  seen?: string | undefined;
  /** It may be made. */
  isNew?: boolean;
}

/**
 * It fails if somebody else changed one of these attributes meanwhile. A plan without a beginning keeps that of the plan before, so
 * that a change of level begins no new counts; else it begins today.
 * @param attributes an undefined one is removed; others stay
 * @param seen `fingerprintRow` of the row as it was looked at. Absent: it is not compared
 */
export async function planEditAccount(
  ports: OperatorPorts,
  { account, attributes: typed, seen, isNew = false }: AccountEdit,
) {
  const found = await findAccount(ports, account, isNew);
  const { row } = found;
  refuseNaming(typed, { account });
  refuseChanged(`account ${account}`, row, seen);
  const attributes = addPlanStart(normalizeMoments(typed, ports.clock.now()), row, ports.clock.now());
  const after = setAttributes(row, attributes);
  requireValid(readAlertedAccount(after, ports.target));
  const conflict = new Failure(`someone else created ${account} in the meantime: see \`customer show\``);
  const changes: RowWrite[] =
    found.changes.length > 0
      ? [{ kind: 'create', table: 'accounts', row: after, conflict }]
      : updateOf({ table: 'accounts', key: { account }, row }, attributes);
  const names = changes.flatMap((write) => Object.keys(write.kind === 'update' ? write.attributes : after));
  const isDisabled = isAccountOff(after) && !isAccountOff(row);
  const isPlanned = names.includes('plan');
  const [held, former] = [planIn(after), planIn(row)];
  if (isPlanned && held?.until !== undefined && held.until <= held.since)
    throw usageFailure('plan.until: must be later than plan.since');
  // Asks where the account gets less: no plan, a lower level or an earlier end than now.
  const isCut =
    held && former && (held.level < former.level || (held.until ?? Infinity) < (former.until ?? Infinity));
  return {
    changes,
    effect: listTexts(
      ...found.effect,
      changes.length === 0 && 'Nothing to change',
      found.changes.length === 0 && changes.length > 0 && `Update customer ${account} (live within 30 s)`,
      isDisabled && `Reject all keys of ${account} within 30 s`,
      isAccountOff(row) && !isAccountOff(after) && `Accept calls of ${account} again`,
    ),
    questions: listTexts(
      isDisabled && `Disable ${account}?`,
      isPlanned && row['plan'] !== undefined && !held && `End the plan of ${account}?`,
      isPlanned && isCut && `Downgrade or shorten the plan of ${account}?`,
    ),
    warnings: [
      ...(isPlanned && held ? await planWarnings(ports, held.level) : []),
      ...(names.some((name) => name.startsWith('price')) ? await priceWarnings(ports, after) : []),
    ],
  };
}

function addPlanStart(attributes: RawRow, row: RawRow, nowMs: number): RawRow {
  const { plan } = attributes;
  if (!isRecord(plan) || plan['since'] !== undefined) return attributes;
  const kept = planIn(row) && textOf(row['plan'], 'since');
  return { ...attributes, plan: { ...plan, since: kept || utcDay(nowMs) } };
}

function planIn({ account, plan }: RawRow): AccountRow['plan'] {
  const reading = readRow(AccountRow, { account, plan });
  return 'row' in reading ? reading.row.plan : undefined;
}

async function planWarnings(ports: OperatorPorts, level: number): Promise<string[]> {
  const { plans, settings } = await compileSettings(ports);
  const hasLevel = plans.some((plan) => plan.level === level);
  return [
    ...(hasLevel ? [] : [`there is no plan with level ${level}, so this plan covers nothing`]),
    ...(settings.subscriptionEnabled
      ? []
      : ['plans cover nothing until the setting subscription.enabled is true']),
  ];
}

const priceWarnings = async (ports: OperatorPorts, row: RawRow): Promise<string[]> =>
  findAccountWarnings(row, compileRows(ports, await ports.config.tables()).snapshot);
