/** Validates newly written rows of keys and accounts, and marks them. Reads what their warnings depend on, never a table. */
import { keyDoubts, namedModels, offeredNames, type BesideKeys } from '../../config/marks/key-doubts.ts';
import { validateAccountRow, validateKeyRow } from '../../config/marks/validate-row.ts';
import { attributeOf } from '../../config/rows/read-row.ts';
import type { ValidationResult } from '../../config/validation-result.ts';
import { snapshotFormat } from '../../config/snapshot.ts';
import type {
  AccountRows,
  RowMarks,
  SnapshotStore,
  ValidatedRow,
  WrittenRow,
} from '../ports/stores/config-store.ts';
import type { ConfigMetrics } from '../ports/telemetry.ts';

const validations: Record<
  WrittenRow['table'],
  (raw: unknown, rules: { local: boolean }) => ValidationResult
> = {
  keys: validateKeyRow,
  accounts: validateAccountRow,
};

export interface RowMarkerPorts {
  marks: RowMarks;
  metrics: Pick<ConfigMetrics, 'badRows' | 'failed'>;
  snapshots: Pick<SnapshotStore, 'newest' | 'snapshot'>;
  accounts: AccountRows;
  /** true on the local stack: loopback addresses are allowed. */
  local: boolean;
}

/** Throws MarksLost, or what the reads throw: then marks of rows that cannot be used are written already. */
export function rowMarker(ports: RowMarkerPorts): (rows: WrittenRow[]) => Promise<void> {
  const { marks, metrics, local } = ports;
  const write = (rows: ValidatedRow[]) =>
    marks.write(rows).catch((error: unknown) => {
      metrics.failed();
      throw error;
    });
  return async (rows) => {
    const validated = rows.map((row) => ({ ...row, result: validations[row.table](row.raw, { local }) }));
    const bad = validated.filter(({ result }) => result.problem !== undefined);
    if (bad.length > 0) metrics.badRows(bad.length);
    await write(bad);
    const good = validated.filter(({ result }) => result.problem === undefined);
    const beside = await besideOf(
      ports,
      good.filter(({ table }) => table === 'keys').map(({ raw }) => raw),
    );
    await write(good.map((row) => (row.table === 'keys' ? doubted(row, beside) : row)));
  };
}

function doubted(row: ValidatedRow, beside: BesideKeys): ValidatedRow {
  const warnings = [row.result.warning ?? [], keyDoubts(row.raw, beside)].flat();
  return { ...row, result: warnings.length > 0 ? { warning: warnings.join('; ') } : {} };
}

/** The names of models only where a key names some. */
async function besideOf({ snapshots, accounts }: RowMarkerPorts, keys: unknown[]): Promise<BesideKeys> {
  if (keys.length === 0) return {};
  const names = keys.map((raw) => attributeOf(raw, 'account')).filter((name) => typeof name === 'string');
  const newest = keys.some((raw) => namedModels(raw).length > 0) ? await snapshots.newest() : undefined;
  return {
    accounts: await accounts.existing([...new Set(names)]),
    offered: newest?.format === snapshotFormat ? offeredNames(await snapshots.snapshot(newest)) : undefined,
  };
}
