import * as z from 'zod/mini';
import { accountName, flag, integerBetween, positiveInteger, time, attributeOf } from './read-row.ts';

const wantedPlan = 'a map {level, since, until}';

/**
 * A row of the table `accounts`: an account that pays, and its plan. Calls read it, so what they do not need is left
 * to alerted-account.ts: a typo in an address must not cost a customer the plan.
 */
export const AccountRow = z.strictObject({
  account: accountName,
  /** false: every key of the account is refused. Calls read it by `isAccountOff`. */
  enabled: z.optional(flag),
  /** true: its calls are counted and charged to nobody's balance. A row with a mistake is not used, so the balance then bounds. */
  metered: z.optional(flag),
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
  alert_below: z.optional(z.unknown()),
  contact: z.optional(z.unknown()),
  note: z.optional(z.string('a text')),
});
export type AccountRow = z.infer<typeof AccountRow>;

/**
 * Whether a row of `accounts` switches its keys off. Needs no valid row: a mistake elsewhere in it must not switch them
 * on again. A switch that cannot be read is off.
 */
export function isAccountOff(raw: unknown): boolean {
  const enabled = attributeOf(raw, 'enabled');
  return enabled !== undefined && z.safeParse(flag, enabled).data !== true;
}
