/** Validates the rows of keys and accounts that were just written, and marks them. */
import { judgeAccountRow, judgeKeyRow } from '../../config/compile/validate-row.ts';
import type { Judgement } from '../../config/validation-result.ts';
import type { RowMarks, WrittenRow } from '../ports/row-marks.ts';
import type { ConfigMetrics } from '../ports/telemetry.ts';

const validations: Record<WrittenRow['table'], (raw: unknown) => Judgement> = {
  keys: judgeKeyRow,
  accounts: judgeAccountRow,
};

export interface RowMarkerPorts {
  marks: RowMarks;
  metrics: Pick<ConfigMetrics, 'badRows'>;
}

/** Throws MarksLost. */
export function rowMarker({ marks, metrics }: RowMarkerPorts): (rows: WrittenRow[]) => Promise<void> {
  return async (rows) => {
    const validated = rows.map((row) => ({ ...row, validation: validations[row.table](row.raw) }));
    const bad = validated.filter(({ validation }) => validation.problem !== undefined);
    if (bad.length > 0) metrics.badRows(bad.length);
    await marks.write(validated);
  };
}
