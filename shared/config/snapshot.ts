import type { ChannelRow } from './rows/channel-row.ts';
import type { ChargeRow } from './rows/charge-row.ts';
import type { PlanRow } from './rows/plan-row.ts';
import { defaultSettings, type Settings } from './settings.ts';

/**
 * The version of the stored format of snapshots. Raise it with every change that an older function would
 * misread. A function that does not know the version keeps its current snapshot.
 */
export const snapshotFormat = 1;

/** The whole configuration at one moment, as JSON. A request keeps the snapshot that it started with. */
export interface Snapshot {
  /** The number under which the snapshot was published. Absent: nothing was published yet. */
  version?: number;
  /** Unix seconds: when this configuration was published. */
  publishedAt: number;
  /** Enabled channels only: priority descending, then id. */
  channels: ChannelRow[];
  /** Sorted by id. The first rule that names a model prices it. */
  charges: ChargeRow[];
  plans: PlanRow[];
  settings: Settings;
  /** Every model that an enabled channel serves, once each, in the order of the channels and their lists. */
  models: string[];
  /** Those without a price that a row of charges names which cannot be read: refused while no rule prices them. */
  unreadPrices?: string[];
}

/** Whether calls of a model are refused while no rule prices it. */
export const needsPrice = (
  { settings, unreadPrices }: Pick<Snapshot, 'settings' | 'unreadPrices'>,
  model: string,
): boolean => settings.unpricedModels === 'refuse' || unreadPrices?.includes(model) === true;

/**
 * The snapshot before the first configuration is published, with empty lists.
 * @param publishedAt Unix seconds
 */
export const createEmptySnapshot = (publishedAt: number): Snapshot => ({
  publishedAt,
  channels: [],
  charges: [],
  plans: [],
  settings: structuredClone(defaultSettings),
  models: [],
});
