/** Validates newly written rows of keys and accounts, and marks them. */
import { validateAccountRow, validateKeyRow } from '../../config/compile/validate-row.ts';
import type { ValidationResult } from '../../config/validation-result.ts';
import type { RowMarks, WrittenRow } from '../ports/stores/config-store.ts';
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
  /** true on the local stack: loopback addresses are allowed. */
  local: boolean;
}

/** Throws MarksLost. */
export function rowMarker({ marks, metrics, local }: RowMarkerPorts): (rows: WrittenRow[]) => Promise<void> {
  return async (rows) => {
    const validated = rows.map((row) => ({ ...row, result: validations[row.table](row.raw, { local }) }));
    const bad = validated.filter(({ result }) => result.problem !== undefined);
    if (bad.length > 0) metrics.badRows(bad.length);
    await marks.write(validated).catch((error: unknown) => {
      metrics.failed();
      throw error;
    });
  };
}
