import * as z from 'zod/mini';
import { accountName, integerBetween, time } from './attribute-schemas.ts';

const wantedPlan = 'a map {level, since, until}';

/** A row of the table `accounts`: an account that pays, and its plan. */
export const AccountRow = z.strictObject({
  account: accountName,
  plan: z.optional(
    z.strictObject(
      { level: integerBetween(1, 3, 'a plan level: 1, 2 or 3'), since: time, until: z.optional(time) },
      wantedPlan,
    ),
  ),
  note: z.optional(z.string('a text')),
});
export type AccountRow = z.infer<typeof AccountRow>;
