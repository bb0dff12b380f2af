import * as z from 'zod/mini';
import { integerBetween, positiveInteger, rowId, time } from './attribute-schemas.ts';

const wantedPlan = 'a map {level, since, until}';

/** A row of the table `accounts`: an account that pays, and its plan. */
export const AccountRow = z.strictObject({
  account: rowId,
  plan: z.optional(
    z.strictObject(
      { level: integerBetween(1, 3, 'a plan level: 1, 2 or 3'), since: time, until: z.optional(time) },
      wantedPlan,
    ),
  ),
  /** The most calls at once, calls a minute, and tokens a minute, over all keys of the account. */
  concurrency: z.optional(positiveInteger),
  rpm: z.optional(positiveInteger),
  tpm: z.optional(positiveInteger),
  note: z.optional(z.string('a text')),
});
export type AccountRow = z.infer<typeof AccountRow>;
