import { PlanRow } from '../rows/plan-row.ts';
import { readRow, type RowReading } from '../rows/read-row.ts';

/** Reads one row of `plans`. */
export const readPlan = (raw: unknown): RowReading<PlanRow> => readRow(PlanRow, raw, idleItems);

const idleItems = ({ items }: PlanRow): string[] =>
  items.flatMap((item, index) => [
    ...(item.models.length === 0 ? [`items[${index}].models: empty, so this entry covers nothing`] : []),
    ...(item.value === 0
      ? [`items[${index}].value: 0, so this entry covers no calls (-1 is unlimited)`]
      : []),
  ]);
