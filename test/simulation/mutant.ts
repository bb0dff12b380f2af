/**
 * Ways in which the reservations could be broken. Each one takes out a single safeguard; the invariants have to notice, else
 * they prove nothing about the reservations as they are.
 */
export const mutants = {
  no_balance_check: 'a reserve does not test the balance',
  no_duplicate_guard: 'a reserve does not test whether its id is open',
  no_settle_condition: 'a close does not test whether its reservation is open',
  early_sweep: 'the sweeper does not wait until nobody can come back',
  ledger_put_not_idempotent: 'a ledger row that comes again is booked again',
  grant_marker_ignored: 'a grant does not test whether it was applied',
  no_tombstone: 'a reserve of unknown outcome is not guarded against its late arrival',
  no_entry_check: 'a close does not test what is open under its id',
  slot_not_released: 'a failed call keeps its plan slot',
  no_place_freed: "a close does not free the place of a key's limit",
  no_slot_limit: 'a reserve does not test whether the plan slot is full',
} as const;

export type Mutant = keyof typeof mutants;
