/** Payments, and the one transaction that writes a payment with the grants that follow from it. */
import type { Payment } from '../../../billing/payments/payment.ts';
import type { PaymentChange } from '../../../billing/payments/payment-grants.ts';

/**
 * `outdated`: the payment was changed since it was read; nothing was written. `taken`: rows of `grants` with these ids
 * exist already, written by somebody else; nothing was written.
 */
export type PaymentWrite = 'written' | 'outdated' | { taken: string[] };

/** Every method rejects with the store's error. */
export interface PaymentStore {
  /** A consistent read. Undefined: nothing is known of the payment. */
  find(id: string): Promise<Payment | undefined>;
  /** Writes the payment and its new rows of `grants` in one transaction, or nothing. Throws StoreBusy. */
  write(change: PaymentChange): Promise<PaymentWrite>;
  /** Whether the table `accounts` has a row of this name. */
  hasAccount(account: string): Promise<boolean>;
  /** Every payment, unordered. */
  all(): AsyncIterable<Payment[]>;
}
