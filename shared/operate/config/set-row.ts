/**
 * Sets attributes of one row of the configuration, makes the row, or removes it. Refuses what the relay would not use, and an
 * edit of a row that somebody else changed since it was looked at. Says what else the change brings about: the warnings that
 * this and other rows would get by it. `carryOutWrites` carries it out.
 */
import { keyAttributes, type ConfigRows } from '../../config/config-rows.ts';
import { attributeOf, plainRow } from '../../config/rows/read-row.ts';
import type { ConfigTable } from '../../config/validation-result.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';
import { planApply, type ConfigPlan } from './apply-rows.ts';
import { findingsIn, nameOf, warningsOf } from './findings.ts';
import { rowsByKey } from './row-changes.ts';
import { refuseChanged } from './row-mark.ts';

type Ports = Pick<OperatorPorts, 'clock' | 'config' | 'target'>;

export interface RowName {
  table: ConfigTable;
  key: string | number;
}

export interface RowEdit extends RowName {
  /** An undefined attribute is removed; others stay. */
  attributes: RawRow;
  /** `rowMark` of the row as it was looked at. Absent: it is not compared. */
  seen?: string | undefined;
  /** Whether the row must be new, or must be there. Absent: it is made if it is not there. */
  isNew?: boolean | undefined;
}

export async function planSetRow(
  ports: Ports,
  { table, key, attributes, seen, isNew }: RowEdit,
): Promise<ConfigPlan> {
  const name = nameOf({ table, key });
  const rows = await ports.config.tables();
  const found = rowIn(rows, { table, key });
  if (isNew === true && found) throw usageFailure(`${keyAttributes[table]}: there is ${name} already`);
  if (isNew === false && !found) throw usageFailure(`there is no ${name}: somebody deleted it`);
  if (found) refuseChanged(name, found, seen);
  const row = { ...(plainRow(found ?? {}) as RawRow), ...attributes, [keyAttributes[table]]: key };
  const text = JSON.stringify({ [table]: [row] });
  const plan = await planApply(onRows(ports, rows), { name, text }, {});
  const problem = plan.problems.find(({ written }) => written)?.finding.problem;
  if (problem !== undefined) {
    const isMeant = found !== undefined || isNew === true;
    throw usageFailure(isMeant ? problem : `there is no ${name}, and this does not make one: ${problem}`);
  }
  const effect =
    plan.changes.length === 0
      ? 'nothing to write: the row is like this already.'
      : `${name} is ${found ? 'changed' : 'made'}; live within 10 seconds.`;
  return { ...plan, warnings: warningsBy(ports, plan), effect: [effect] };
}

/** Deletes the row. A rollback brings it back. */
export async function planRemoveRow(ports: Ports, { table, key }: RowName): Promise<ConfigPlan> {
  const rows = await ports.config.tables();
  const found = rowIn(rows, { table, key });
  if (!found) throw usageFailure(`there is no ${nameOf({ table, key })}: see \`${table.slice(0, -1)} list\``);
  const left = rows[table].filter((each) => each !== found);
  const text = JSON.stringify({ [table]: [...rowsByKey(table, left).values()] });
  const plan = await planApply(onRows(ports, rows), { name: table, text }, { prune: true });
  return {
    ...plan,
    effect: [
      `${nameOf({ table, key })} is deleted; live within 10 seconds. \`version rollback\` brings it back.`,
    ],
    warnings: warningsBy(ports, plan),
  };
}

const rowIn = (rows: ConfigRows, { table, key }: RowName): unknown =>
  rows[table].find((row) => attributeOf(row, keyAttributes[table]) === key);

/** The tables are read once for all parts of a plan. */
export const onRows = (ports: Ports, rows: ConfigRows): Ports => ({
  ...ports,
  config: { ...ports.config, tables: async () => rows },
});

/** The warnings that there are afterwards and were not before; a price that jumps is one. */
function warningsBy(ports: Ports, { edit: { before }, warnings }: ConfigPlan): string[] {
  const known = new Set(
    warningsOf(findingsIn(before, ports)).map((each) => `${nameOf(each)}: ${each.warning}`),
  );
  return warnings.filter((warning) => !known.has(warning));
}
