import { PlanRow } from '../rows/plan-row.ts';
import { lastGoodVersion, readRow, type RowReading } from '../rows/read-row.ts';
import type { TableReader } from './read-table.ts';

/** Reads one row of `plans`. */
export function readPlan(raw: unknown): RowReading<PlanRow> {
  const reading = readRow(PlanRow, raw);
  if ('problem' in reading) return reading;
  const idle = reading.row.items.flatMap((item, index) => [
    ...(item.models.length === 0 ? [`items[${index}].models: empty, so this entry covers nothing`] : []),
    ...(item.value === 0
      ? [`items[${index}].value: 0, so this entry covers no calls (-1 is unlimited)`]
      : []),
  ]);
  return idle.length > 0 ? { ...reading, warning: idle.join('; ') } : reading;
}

export const planReader: TableReader<PlanRow> = {
  table: 'plans',
  read: readPlan,
  standIn: ({ lastGood }) => lastGoodVersion(lastGood),
};
