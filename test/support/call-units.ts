/**
 * Write units of a call, by table. test/contract/call-costs.test.ts counts them at a store; docs/scale.md (test/docs/scale.test.ts) and
 * docs/cost.md (test/scripts/cost-page.ts) compute with them.
 */
export const callUnits = {
  /** Reserve and settle. */
  quotas: 2,
  /** A row in a transaction, which costs double. */
  ledger: 2,
  /** The index of the row, which has a quota of its own. */
  ledgerIndex: 1,
  /** A batch of calls of as many accounts: for each, sums by day, hour and month, in a transaction. Sums that all share come on top. */
  daily: 6,
  /** The item of a budget: what is held, and what is given back, in a transaction. */
  budget: 3,
};
