import type { ConfigTable } from './validation-result.ts';

/** All rows of the four tables, as the SDK's document client returns them or as a snapshot stores them. */
export type ConfigRows = Record<ConfigTable, unknown[]>;

export const emptyRows: ConfigRows = { channels: [], charges: [], plans: [], settings: [] };

/** The key attribute of each table. */
export const keyAttributes: Record<ConfigTable, string> = {
  channels: 'id',
  charges: 'id',
  plans: 'level',
  settings: 'name',
};
