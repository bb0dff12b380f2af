/** The schema of a row of `accounts`, as calls read it. */
import * as z from 'zod/mini';
import { customerPrices } from './price-terms.ts';
import { isAttributedBy, type AttributedBy } from '../../billing/ledger-row.ts';
import {
  accountName,
  attributeOf,
  flag,
  integerBetween,
  listOf,
  parseRow,
  periodShape,
  positiveInteger,
  text,
  textOf,
  time,
} from './read-row.ts';

const wantedProfile = 'the id of a user profile: "uprof_..."';
const wantedPlan = 'a map {level, since, until}';
const wantedBy = '"end_user", or "tag:" and the name of a tag';
const wantedName = 'a text of at most 64 characters, without blanks around it';
const budgetsMax = 50;
/** A call counts toward at most one budget of each kind, and each of them costs it a write. */
const budgetKindsMax = 4;

const Budget = z.strictObject(
  {
    by: z.custom<AttributedBy>((by) => typeof by === 'string' && isAttributedBy(by), wantedBy),
    // No call has a name with blanks around it, so its budget would bound nobody.
    name: z._default(z.string(wantedName).check(z.regex(/^(?!\s)[^]{0,64}(?<!\s)$/, wantedName)), '*'),
    ...periodShape,
  },
  'a map {by, name, amount, period}',
);
export type AccountBudget = z.infer<typeof Budget>;

/** `*` applies to calls whose name has no budget of its own for the period, and to calls without a name. */
const budgets = listOf(
  Budget,
  budgetsMax,
  `a list of 1 to ${budgetsMax} maps {by, name, amount, period}`,
).check(
  z.refine(
    (all) => countEach(all, ({ by, name, period }) => `${by} ${period} ${name}`) === all.length,
    'one budget for a name and period',
  ),
  z.refine(
    (all) => countEach(all, ({ by, period }) => `${by} ${period}`) <= budgetKindsMax,
    `at most ${budgetKindsMax} pairs of by and period`,
  ),
);

const countEach = (all: readonly AccountBudget[], nameOf: (budget: AccountBudget) => string): number =>
  new Set(all.map(nameOf)).size;

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
  /** false: the customer's stored card is never charged. */
  auto_top_up: z.optional(flag),
  /** Yuan a day or month for calls of an end user, or with a tag. */
  budgets: z.optional(budgets),
  alert_below: z.optional(z.unknown()),
  contact: z.optional(z.unknown()),
  note: z.optional(z.string('a text')),
});
export type AccountRow = z.infer<typeof AccountRow>;

/** Returns only the budgets of an invalid row, so that a mistake elsewhere doesn't lift them. Unreadable budgets allow no spending. */
export function parseAccountRow(raw: unknown): AccountRow | undefined {
  const row = parseRow(AccountRow, raw);
  const written = attributeOf(raw, 'budgets');
  if (row || written === undefined) return row;
  const account = textOf(raw, 'account');
  return { account, budgets: readBudgets(written) ?? [zeroBudget] };
}

export const readBudgets = (written: unknown): AccountRow['budgets'] =>
  parseRow(AccountRow, { account: 'any', budgets: written })?.budgets;

const zeroBudget: AccountBudget = { by: 'end_user', name: '*', amount: 0, period: 'day' };

/** Returns the customer's id at a vendor that asks resellers to name their customers. */
export const customerProfileOf = (row: AccountRow | undefined): string | undefined => row?.anthropic_profile;

/** Works on invalid rows too: a mistake elsewhere must not enable the account again. An unreadable switch is off. */
export function isAccountOff(raw: unknown): boolean {
  const enabled = attributeOf(raw, 'enabled');
  return enabled !== undefined && z.safeParse(flag, enabled).data !== true;
}
