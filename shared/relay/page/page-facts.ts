/** The facts that the page shows. All of them must also be public in the read endpoints. */
import type { ChargeEntry, PlanEntry } from '../../wire/public/catalog.ts';

export interface PageFacts {
  /** The public base address including `/v1`. */
  baseUrl: string;
  models: string[];
  /** Sorted by id. The first rule that names a model determines its price. */
  charges: ChargeEntry[];
  /** Empty unless subscriptions are enabled. */
  plans: PlanEntry[];
  contact: string;
  relayClosed: boolean;
}
