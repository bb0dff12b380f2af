import type { ChannelRow } from './rows/channel-row.ts';
import type { ChargeRow } from './rows/charge-row.ts';
import type { PlanRow } from './rows/plan-row.ts';
import { defaultSettings, type Settings } from './rows/settings.ts';

/**
 * The version of the stored form of snapshots. It is raised with every change that an older function would misread: a
 * function that does not know the form keeps the snapshot that it has.
 */
export const snapshotFormat = 1;

/** The whole configuration at one moment, as JSON. A request keeps the snapshot that it started with. */
export interface Snapshot {
  /** The number under which it was published; absent: nothing was ever published. */
  version?: number;
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

/**
 * The snapshot of a relay before its first configuration: empty lists, no model.
 * @param publishedAt Unix seconds
 */
export const emptySnapshot = (publishedAt: number): Snapshot => ({
  publishedAt,
  channels: [],
  charges: [],
  plans: [],
  settings: structuredClone(defaultSettings),
  models: [],
});
