/** The schema of a row of `plans`. */
import * as z from 'zod/mini';
import { amount, integerBetween, modelList, text, readRow, type RowReading } from './read-row.ts';
import { listTexts } from '../../wire/json.ts';

const PlanItem = z.strictObject(
  {
    id: text,
    name: z._default(z.string('a text'), ''),
    icon: z._default(z.string('a text'), ''),
    value: integerBetween(
      -1,
      Number.MAX_SAFE_INTEGER,
      'a whole number of calls a month, or -1 for unlimited',
    ),
    models: modelList,
  },
  'a map {id, name, icon, value, models}',
);

const haveUniqueIds = (items: { id: string }[]): boolean =>
  new Set(items.map((item) => item.id)).size === items.length;

/** `value` is the number of calls a month, or -1. */
export const PlanRow = z.strictObject({
  level: integerBetween(1, 3, 'a plan level: 1, 2 or 3'),
  price: z._default(amount, 0),
  items: z._default(
    z.array(PlanItem, 'a list of entries').check(z.refine(haveUniqueIds, 'entries with different ids')),
    [],
  ),
});
export type PlanRow = z.infer<typeof PlanRow>;

export const readPlan = (raw: unknown): RowReading<PlanRow> => readRow(PlanRow, raw, warnOfIdleItems);

const warnOfIdleItems = ({ items }: PlanRow): string[] =>
  items.flatMap((item, index) =>
    listTexts(
      item.models.length === 0 && `items[${index}].models: empty, so this entry covers nothing`,
      item.value === 0 && `items[${index}].value: 0, so this entry covers no calls (-1 is unlimited)`,
    ),
  );
