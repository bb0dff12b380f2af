/**
 * Rows in an action of an operator: reads accounts and price rules, refuses a row that changed since it was looked at, plans
 * the update of attributes that differ, and carries out the writes of a plan.
 */
import { startMsOf } from '../billing/price.ts';
import { AccountRow } from '../config/rows/account-row.ts';
import { ChargeRow } from '../config/rows/charge-row.ts';
import { plainRow, plainValue, readRow } from '../config/rows/read-row.ts';
import type { TableName } from '../tables/table-names.ts';
import { fingerprint } from '../wire/ids.ts';
import { canonicalJson } from '../wire/json.ts';
import type { OperatorPorts, RawRow, RowWrite } from './operator-ports.ts';
import { Failure, requireValid, usageFailure, type Plan } from './plan.ts';

/**
 * Carries out the writes in order, unless together, and throws at the first write that fails with a `conflict`.
 * @returns the writes that were made; failed writes without a `conflict` are left out
 */
export async function carryOutWrites(
  { tables }: OperatorPorts,
  { changes, refusal, together }: Plan<RowWrite>,
): Promise<RowWrite[]> {
  if (refusal !== undefined) throw new Failure(refusal);
  if (together) {
    await tables.writeTogether(changes);
    return changes;
  }
  const made: RowWrite[] = [];
  for (const write of changes) {
    if (await tables.write(write)) made.push(write);
    else if (write.conflict) throw write.conflict;
  }
  return made;
}

/** Sets the attributes that differ, if nobody changed them since; an undefined one is removed. Empty: none differs. */
export function updateOf(
  { table, key, row }: { table: TableName; key: RawRow; row: RawRow },
  attributes: RawRow,
): RowWrite[] {
  const names = Object.keys(attributes).filter((name) => textOf(row[name]) !== textOf(attributes[name]));
  const pickAttributes = (from: RawRow): RawRow =>
    Object.fromEntries(names.map((name) => [name, from[name]]));
  const conflict = new Failure('someone else changed this row in the meantime: review it and try again');
  return names.length === 0
    ? []
    : [
        {
          kind: 'update',
          table,
          key,
          attributes: pickAttributes(attributes),
          unchanged: pickAttributes(row),
          conflict,
        },
      ];
}

/** Creates a setting, or changes it if its value is still the known one. */
export function writeSetting(known: RawRow | undefined, name: string, attributes: RawRow): RowWrite {
  const table = 'settings';
  const conflict = new Failure(`someone else changed the setting ${name} in the meantime: try again`);
  return known
    ? { kind: 'update', table, key: { name }, attributes, unchanged: { value: known['value'] }, conflict }
    : { kind: 'create', table, row: { name, ...attributes }, conflict };
}

const textOf = (value: unknown): string | undefined => canonicalJson(plainValue(value) ?? null);

/** Throws a usage failure if attributes contradict the name or the owner that identifies their row. */
export function refuseNaming(attributes: RawRow, named: RawRow): void {
  for (const [name, value] of Object.entries(named))
    if (Object.hasOwn(attributes, name) && attributes[name] !== value)
      throw usageFailure(`${name} can't be changed: it identifies the row`);
}

/** A row with attributes set; an undefined one is removed. */
export const setAttributes = (row: RawRow, attributes: RawRow): RawRow =>
  Object.fromEntries(Object.entries({ ...row, ...attributes }).filter(([, value]) => value !== undefined));

/** Invisible characters make a name look like another customer's, and a page's address cannot be `..`. */
const newName = /^(?!\.+$)[^\p{C}]{1,200}$/u;

/**
 * Throws a Failure if the account does not exist and `isNew` is false: a mistyped name must not create an account.
 * `changes`: the writes that create it; empty: it exists.
 */
export async function findAccount({ tables }: OperatorPorts, account: string, isNew = false) {
  const row: RawRow = { account };
  const changes: RowWrite[] = [];
  requireValid(readRow(AccountRow, row));
  const found = await tables.get('accounts', account);
  if (found) return { row: found, changes, effect: [] };
  if (!isNew)
    throw usageFailure(
      `no customer ${account}: create it with \`customer new\` or \`key new\`, or use \`grant new --new\``,
    );
  if (!newName.test(account))
    throw usageFailure('invalid customer name: use up to 200 visible characters, not only dots');
  changes.push({ kind: 'create', table: 'accounts', row });
  return { row, changes, effect: [`Create customer ${account}`] };
}

/** A short fingerprint of a row, or of the edited part of one. */
export const fingerprintRow = (row: unknown): string => fingerprint(canonicalJson(plainRow(row)) ?? '');

/**
 * Throws a Failure if the row is not as it was looked at: a form loaded before the edit of somebody else must not undo it.
 * @param name what an operator calls it
 * @param seen its `fingerprintRow` then; undefined: it was not looked at, so nothing is compared
 */
export function refuseChanged(name: string, row: unknown, seen: string | undefined): void {
  if (seen !== undefined && fingerprintRow(row) !== seen)
    throw new Failure(`someone else changed ${name} in the meantime: review it and try again`);
}

export function readCharges(rows: readonly RawRow[]) {
  const charges: ChargeRow[] = [];
  const problems: string[] = [];
  for (const raw of rows) {
    const reading = readRow(ChargeRow, raw);
    if ('problem' in reading) problems.push(`${String(raw['id'])} is invalid: ${reading.problem}`);
    else charges.push(reading.row);
  }
  return { charges: charges.toSorted((a, b) => a.id - b.id), problems };
}

/** Rules that begin after a time and then price one of the models, the first one first. */
export const findLaterRules = (
  charges: readonly ChargeRow[],
  models: readonly string[],
  afterMs: number,
): ChargeRow[] =>
  charges
    .filter((rule) => startMsOf(rule) > afterMs && rule.models.some((model) => models.includes(model)))
    .toSorted((a, b) => startMsOf(a) - startMsOf(b));
