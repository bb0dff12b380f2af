/** What the page shows; nothing that the public read endpoints do not say too. */
import type { ChargeEntry, PlanEntry } from '../../wire/catalog.ts';

export interface PageFacts {
  /** The public base address including `/v1`. */
  baseUrl: string;
  models: string[];
  /** By id: the first that names a model prices it. */
  charges: ChargeEntry[];
  /** Empty unless subscriptions are enabled. */
  plans: PlanEntry[];
  contact: string;
  relayClosed: boolean;
}
