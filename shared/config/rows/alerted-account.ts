/** Reads an account's row for alerts: the balance to warn below, and the contact. Validates the whole row. */
import * as z from 'zod/mini';
import type { NanoYuan } from '../../billing/money.ts';
import { findEndpointProblem } from '../../upstreams/endpoint-rules.ts';
import { AccountRow, isAccountOff, readBudgets } from './account-row.ts';
import {
  attributeOf,
  findPaddedNames,
  optionMap,
  parseRow,
  text,
  readRow,
  yuanThat,
  type RowReading,
} from './read-row.ts';
import { warnOf, type ValidationResult } from './read-table.ts';

const wantedMail = 'an e-mail address';

const alertBelow = yuanThat(
  'an amount in yuan above 0, at most 9 decimals, below a trillion',
  (amount) => amount > 0n,
);

/** The balance of a metered account raises no alert. */
export function readAlertBelow(row: AccountRow | undefined): NanoYuan | undefined {
  const read = z.safeParse(z.optional(alertBelow), row?.alert_below);
  return row?.metered || !read.success ? undefined : read.data;
}

/** A mail header must not read it as two addresses. */
const oneAddress = /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@([A-Za-z0-9-]+\.)+[A-Za-z]{2,63}$/;

const mailAddress = z
  .string(wantedMail)
  .check(z.trim(), z.maxLength(254, wantedMail), z.regex(oneAddress, wantedMail));

export const AlertedRow = z.extend(AccountRow, {
  alert_below: z.optional(alertBelow),
  contact: z.optional(
    optionMap(
      { name: z.optional(text), email: z.optional(mailAddress), webhook: z.optional(text) },
      'a map {name, email, webhook}',
    ),
  ),
});

export interface AlertedAccount {
  account: string;
  /** True if its card may be charged: it pays its calls from a balance, and the operator allows it. */
  mayTopUp?: boolean | undefined;
  alertBelow?: NanoYuan | undefined;
  planUntilMs?: number | undefined;
  planLevel?: number | undefined;
  email?: string | undefined;
  webhook?: string | undefined;
}

export function readAlertedAccount(raw: unknown, rules: { local: boolean }): RowReading<AlertedAccount> {
  const reading = readRow(AlertedRow, raw);
  if ('problem' in reading) return reading;
  const { account, alert_below, auto_top_up, plan, contact, metered } = reading.row;
  const isOff = isAccountOff(raw);
  const problem = contact?.webhook === undefined ? undefined : findEndpointProblem(contact.webhook, rules);
  if (problem !== undefined) return { problem: `contact.webhook: ${problem}` };
  return {
    row: {
      account,
      mayTopUp: !metered && auto_top_up !== false && !isOff,
      // Operators take the balance of a closed account back, which must not alert the former customer.
      alertBelow: metered || isOff ? undefined : alert_below,
      planUntilMs: plan?.until,
      planLevel: plan?.level,
      email: contact?.email,
      webhook: contact?.webhook,
    },
  };
}

/** The balance of an invalid row still pays, unless the row says that the account is off. */
export function validateAccountRow(raw: unknown, rules = { local: false }): ValidationResult {
  const reading = readAlertedAccount(raw, rules);
  if (!('problem' in reading)) return warnOf(findPaddedNames(raw));
  return { problem: `${reading.problem}; until it is fixed, ${describeConsequence(raw)}` };
}

function describeConsequence(raw: unknown): string {
  if (isAccountOff(raw)) return 'the keys of the account are rejected';
  if (parseRow(AccountRow, raw)) return 'no alerts are sent for the account';
  const isPriced = ['prices', 'price_group'].some((name) => attributeOf(raw, name) !== undefined);
  const budgets = attributeOf(raw, 'budgets');
  const bound =
    budgets === undefined
      ? ''
      : readBudgets(budgets)
        ? '; its budgets still apply'
        : '; it may spend nothing';
  return `the account has no plan and no limits${isPriced ? ', and pays the standard prices' : ''}${bound}`;
}
