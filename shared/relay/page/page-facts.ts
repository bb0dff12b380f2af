/**
 * The facts that the page shows. All of them are public: in the read endpoints or, of prices and notices, in what every key
 * may read of its account.
 */
import type { PriceChange } from '../../billing/price-changes.ts';
import type { PriceRule } from '../../billing/price-rule.ts';
import type { AccountNotice } from '../../wire/public/account.ts';
import type { PlanEntry } from '../../wire/public/catalog.ts';

export interface PageFacts {
  /** The public base address including `/v1`. */
  baseUrl: string;
  models: string[];
  /** Names that stand for several of them. */
  aliases: { name: string; models: string[] }[];
  /** The models all of whose candidates rest now. */
  resting: ReadonlySet<string>;
  /** Sorted by id. */
  charges: PriceRule[];
  /** Prices that begin later, by time. */
  changes: PriceChange[];
  notices: AccountNotice[];
  /** Epoch milliseconds: decides which rules are in force. */
  nowMs: number;
  /** The calendar in which dates are written. */
  timeZone: string;
  /** Empty unless subscriptions are enabled. */
  plans: PlanEntry[];
  contact: string;
  relayClosed: boolean;
  /** Whether there is a page for accounts to link to. */
  accountPage: boolean;
}
