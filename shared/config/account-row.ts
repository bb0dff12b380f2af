import * as z from 'zod/mini';
import { integer, text, time } from './cells.ts';

/** A row of the table `accounts`: who pays, and the plan they hold. */
export const AccountRow = z.strictObject({
  account: text,
  plan: z.optional(
    z.strictObject({ level: integer.check(z.gte(1), z.lte(3)), since: time, until: z.optional(time) }),
  ),
  note: z.optional(z.string()),
});
export type AccountRow = z.infer<typeof AccountRow>;
