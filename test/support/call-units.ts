/**
 * Write units of a call, by table. test/contract/call-costs.test.ts counts them at a store; docs/scale.md (test/docs/scale.test.ts) and
 * docs/cost.md (test/scripts/cost-page.ts) compute with them.
 */
export const callUnits = {
  /** Reserve and settle. */
  quotas: 2,
  /** A row in a transaction, which costs double. */
  ledger: 2,
  /** The row's index, which has its own quota. */
  ledgerIndex: 1,
  /** For each call of a batch of different accounts: sums by day, hour and month, in a transaction. The sums of all accounts are extra. */
  daily: 6,
  /** The sums of the minute, which a batch shares and writes outside the transaction. */
  minute: 1,
  /** Row, index and sums of a call that shares none of them. */
  loneRow: 16,
  /** The budget's item: reserve, then release in a transaction, which costs double. */
  budget: 3,
};
