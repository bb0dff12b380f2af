/** Who may store, and for how long. Nobody may unless the key or the setting says so. */
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { StoreSettings } from '../../config/settings.ts';
import type { Snapshot } from '../../config/snapshot.ts';

export const storeSettings = ({ settings }: Snapshot): StoreSettings => settings.store;

/** The key's own word counts before the setting. */
export const mayStore = ({ key, snapshot }: { key: KeyRow; snapshot: Snapshot }): boolean =>
  key.store ?? storeSettings(snapshot).allKeys;
