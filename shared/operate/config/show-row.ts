/** View: rows of one table of the configuration, as written, with what is known against them. Shows no value of a bad row. */
import { keyAttributes } from '../../config/config-rows.ts';
import { attributeOf, plainRow } from '../../config/rows/read-row.ts';
import type { ConfigTable } from '../../config/validation-result.ts';
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';
import { findingsInTables, nameOf } from './findings.ts';
import type { RowName } from './set-row.ts';

export interface ShownRow {
  key: string | number;
  /** Without notes and marks. Undefined: the row has a problem, so one of its values may be a secret. */
  row: RawRow | undefined;
  problem?: string | undefined;
  warning?: string | undefined;
  /** Who wrote it last, and when, as far as the row says it. */
  by?: string | undefined;
  at?: string | undefined;
}

type Ports = Pick<OperatorPorts, 'clock' | 'config' | 'target'>;

/** Sorted by key. */
export async function listRows(ports: Ports, table: ConfigTable): Promise<ShownRow[]> {
  const rows = await ports.config.tables();
  const found = new Map(findingsInTables(rows, ports).map((finding) => [nameOf(finding), finding]));
  return rows[table]
    .map((raw): ShownRow => {
      const key = attributeOf(raw, keyAttributes[table]) as string | number;
      const { problem, warning } = found.get(nameOf({ table, key })) ?? {};
      return {
        key,
        row: problem === undefined ? (plainRow(raw) as RawRow) : undefined,
        problem,
        warning,
        by: textOf(attributeOf(raw, '_by')),
        at: textOf(attributeOf(raw, '_at')),
      };
    })
    .toSorted((a, b) => Number(a.key) - Number(b.key) || compareCodeUnits(String(a.key), String(b.key)));
}

/** Throws a Failure if there is no such row. */
export async function showRow(ports: Ports, { table, key }: RowName): Promise<ShownRow> {
  const found = (await listRows(ports, table)).find((each) => each.key === key);
  if (found) return found;
  throw usageFailure(`there is no ${nameOf({ table, key })}: see \`${table.slice(0, -1)} list\``);
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
