import type { QuotaItem } from '../../billing/quota-item.ts';

/** An item of the scan, not yet understood. */
export interface ScannedQuota {
  account: string;
  /** Throws Poisoned. */
  read(): QuotaItem;
}

export interface QuotaScan {
  /** Every account's item that has open reservations, as it is now. Rejects when the store does not answer. */
  open(): AsyncIterable<ScannedQuota>;
}
