import * as z from 'zod/mini';
import { amount, integer, text, textList } from './cells.ts';

/** A row of the table `plans`: a subscription level. `value` counts calls a month, -1 is unlimited. */
export const PlanRow = z.strictObject({
  level: integer.check(z.gte(1), z.lte(3)),
  price: z._default(amount, 0),
  items: z._default(
    z.array(
      z.strictObject({
        id: text,
        name: z._default(z.string(), ''),
        icon: z._default(z.string(), ''),
        value: integer.check(z.gte(-1)),
        models: textList,
      }),
    ),
    [],
  ),
});
export type PlanRow = z.infer<typeof PlanRow>;
