import type { ChannelRow } from './channel-row.ts';
import type { ChargeRow } from './charge-row.ts';
import type { PlanRow } from './plan-row.ts';
import type { Settings } from './settings.ts';

/** The whole configuration at one moment; a request keeps the one it started with. */
export interface Snapshot {
  /** Unix seconds: when this configuration was published. */
  publishedAt: number;
  /** Enabled channels only: priority descending, then id. */
  channels: ChannelRow[];
  /** By id; the first that names a model prices it. */
  charges: ChargeRow[];
  /** By level. */
  plans: PlanRow[];
  settings: Settings;
  /** Every model that an enabled channel serves: by channel order, then listed order, each once. */
  models: string[];
}

/** What a row is told. `problem`: it is not used. `warning`: it is used, but look at it. */
export interface Verdict {
  table: 'channels' | 'charges' | 'plans' | 'settings';
  key: string | number;
  problem?: string;
  warning?: string;
}
