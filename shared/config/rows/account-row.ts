/** The schema of a row of `accounts`, as calls read it. */
import * as z from 'zod/mini';
import { customerPrices } from './price-terms.ts';
import { accountName, flag, integerBetween, positiveInteger, text, time, attributeOf } from './read-row.ts';

const wantedProfile = 'the id of a user profile: "uprof_..."';
const wantedPlan = 'a map {level, since, until}';

/** Leaves attributes that calls do not need to alerted-account.ts: a typo in an address must not cost a customer the plan. */
export const AccountRow = z.strictObject({
  account: accountName,
  /** false refuses every key of the account. Calls read it by `isAccountOff`. */
  enabled: z.optional(flag),
  /** Calls are counted, but no balance pays. An invalid row is not used, so the balance is then the limit. */
  metered: z.optional(flag),
  plan: z.optional(
    z.strictObject(
      { level: integerBetween(1, 3, 'a plan level: 1, 2 or 3'), since: time, until: z.optional(time) },
      wantedPlan,
    ),
  ),
  /** Limits over all keys of the account: calls at once, calls a minute, tokens a minute. */
  concurrency: z.optional(positiveInteger),
  rpm: z.optional(positiveInteger),
  tpm: z.optional(positiveInteger),
  /** The customer's profile id at Anthropic, sent with each call to its API. */
  anthropic_profile: z.optional(
    z.string(wantedProfile).check(z.regex(/^uprof_[A-Za-z0-9]{1,64}$/, wantedProfile)),
  ),
  /** The first entry that matches a model applies. The entries of `price_group` follow. */
  prices: z.optional(customerPrices),
  price_group: z.optional(text),
  /** false keeps the customer's card from being charged. */
  auto_top_up: z.optional(flag),
  alert_below: z.optional(z.unknown()),
  contact: z.optional(z.unknown()),
  note: z.optional(z.string('a text')),
});
export type AccountRow = z.infer<typeof AccountRow>;

/** Returns the customer's id at a vendor that asks resellers to name their customers. */
export const customerProfileOf = (row: AccountRow | undefined): string | undefined => row?.anthropic_profile;

/** Works on invalid rows too: a mistake elsewhere must not enable the account again. An unreadable switch is off. */
export function isAccountOff(raw: unknown): boolean {
  const enabled = attributeOf(raw, 'enabled');
  return enabled !== undefined && z.safeParse(flag, enabled).data !== true;
}
