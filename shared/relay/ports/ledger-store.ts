/** What the keepers of the reservations (ledger, grants, sweeper) need of the world beside the ports of a call. */
import type { CloseRow } from '../../billing/ledger-row.ts';

export interface LedgerStore {
  /**
   * Puts the row unless its id has one; a row of kind `cancelled` gives way to any other. Safe to repeat, in any order.
   * Throws what makes it worth trying again later, or Poisoned.
   */
  putIfAbsent(row: CloseRow): Promise<void>;
}

/** Each of these has an alarm: a person has to look. */
export const metricNames = [
  'ConservationBroken',
  'LedgerPoisoned',
  'GrantPoisoned',
  'ReservationPoisoned',
] as const;
export type MetricName = (typeof metricNames)[number];

export interface Metrics {
  /** Counts one. */
  count(name: MetricName): void;
}

/** A record or item that will never be understood, however often it comes. The message is in our own words. */
export class Poisoned extends Error {
  override readonly name = 'Poisoned';
}
