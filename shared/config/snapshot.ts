/** The compiled configuration that requests are served with. */
import type { ChannelRow } from './rows/channel-row.ts';
import type { ChargeRow } from './rows/charge-row.ts';
import type { PlanRow } from './rows/plan-row.ts';
import { defaultSettings, type Settings } from './settings.ts';

/** Raise this with every change that an older function would misread. It keeps its snapshot when it does not know the version. */
export const snapshotFormat = 1;

/** All valid rows at one moment, as JSON. A request keeps the snapshot that it started with. */
export interface Snapshot {
  /** Missing until the first publication. */
  version?: number;
  /** Unix seconds. */
  publishedAt: number;
  /** Enabled channels, by priority descending, then id. */
  channels: ChannelRow[];
  /** Disabled channels whose vendors may still answer calls in background windows. */
  drainingChannels?: ChannelRow[];
  /** Sorted by id. The first rule that names a model prices it. */
  charges: ChargeRow[];
  plans: PlanRow[];
  settings: Settings;
  /** The models of enabled channels, in the order of the channels and their lists. */
  models: string[];
  /** Models whose only price is in an invalid row of `charges`. They are refused, because somebody meant to price them. */
  unreadPrices?: string[];
}

export const needsPrice = (
  { settings, unreadPrices }: Pick<Snapshot, 'settings' | 'unreadPrices'>,
  model: string,
): boolean => settings.unpricedModels === 'refuse' || unreadPrices?.includes(model) === true;

/** Used before the first configuration is published. */
export const createEmptySnapshot = (publishedAt: number): Snapshot => ({
  publishedAt,
  channels: [],
  charges: [],
  plans: [],
  settings: structuredClone(defaultSettings),
  models: [],
});
