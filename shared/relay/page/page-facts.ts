/**
 * The facts that the page shows. All of them are public: in the read endpoints or, of prices, in the rows of an
 * account's usage.
 */
import type { PriceRule } from '../../billing/price-rule.ts';
import type { PlanEntry } from '../../wire/public/catalog.ts';

export interface PageFacts {
  /** The public base address including `/v1`. */
  baseUrl: string;
  models: string[];
  /** Names that stand for several of them. Absent: none. */
  aliases?: { name: string; models: string[] }[];
  /** Sorted by id. */
  charges: PriceRule[];
  /** Epoch milliseconds: decides which rules are in force. */
  nowMs: number;
  /** Empty unless subscriptions are enabled. */
  plans: PlanEntry[];
  contact: string;
  relayClosed: boolean;
}
