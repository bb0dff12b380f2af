import { attributeOf, readRow } from './read-row.ts';
import type { RowReading } from './read-row.ts';
import { ChargeRow } from './charge-row.ts';
import type { ChannelRow } from './channel-row.ts';
import { PlanRow } from './plan-row.ts';
import { readChannel } from './read-channel.ts';
import { readSetting, safeSettings } from './read-setting.ts';
import { defaultSettings } from './settings.ts';
import type { Settings } from './settings.ts';
import type { Snapshot, Verdict } from './snapshot.ts';

/** All rows of the four tables, as the SDK's document client returns them. */
export interface ConfigRows {
  channels: unknown[];
  charges: unknown[];
  plans: unknown[];
  settings: unknown[];
}

export interface CompileOptions {
  /** true on the local stack: loopback endpoints and `env:` secrets are allowed. */
  local: boolean;
  /** Unix seconds. */
  publishedAt: number;
}

/**
 * Turns the rows of the ops-edited tables into the one configuration that requests are served with, and a
 * verdict for each row. Never throws: a row that does not fit is left out and its verdict says why.
 */
export function compileSnapshot(
  rows: ConfigRows,
  options: CompileOptions,
): { snapshot: Snapshot; verdicts: Verdict[] } {
  const channels = readTable('channels', 'id', rows.channels, (raw) => readChannel(raw, options));
  const charges = readTable('charges', 'id', rows.charges, (raw) => readRow(ChargeRow, raw));
  const plans = readTable('plans', 'level', rows.plans, (raw) => readRow(PlanRow, raw));
  const { settings, verdicts } = readSettings(rows.settings);

  const enabled = channels.rows.filter((channel) => channel.state).toSorted(byPriorityThenId);
  const snapshot: Snapshot = {
    publishedAt: options.publishedAt,
    channels: enabled,
    charges: charges.rows.toSorted((a, b) => a.id - b.id),
    plans: plans.rows.toSorted((a, b) => a.level - b.level),
    settings,
    models: [...new Set(enabled.flatMap((channel) => channel.models))],
  };
  return { snapshot, verdicts: [...channels.verdicts, ...charges.verdicts, ...plans.verdicts, ...verdicts] };
}

function readTable<Row>(
  table: Verdict['table'],
  keyAttribute: string,
  rawRows: unknown[],
  read: (raw: unknown) => RowReading<Row>,
): { rows: Row[]; verdicts: Verdict[] } {
  const rows: Row[] = [];
  const verdicts = rawRows.map((raw): Verdict => {
    const reading = read(raw);
    const key = keyOf(raw, keyAttribute);
    if ('problem' in reading) return { table, key, problem: reading.problem };
    rows.push(reading.row);
    return reading.warning === undefined ? { table, key } : { table, key, warning: reading.warning };
  });
  return { rows, verdicts };
}

function readSettings(rawRows: unknown[]): { settings: Settings; verdicts: Verdict[] } {
  const settings = structuredClone(defaultSettings);
  const verdicts = rawRows.map((raw): Verdict => {
    const verdict = { table: 'settings' as const, key: keyOf(raw, 'name') };
    const reading = readSetting(raw);
    if (!('problem' in reading)) {
      Object.assign(settings, reading.row);
      return verdict;
    }
    const safe = safeSettings(raw);
    Object.assign(settings, safe?.settings);
    return { ...verdict, problem: safe ? `${reading.problem}; ${safe.said}` : reading.problem };
  });
  return { settings, verdicts };
}

/** As the table has it, so that the verdict can be written back to that very row. */
function keyOf(raw: unknown, attribute: string): string | number {
  const key = attributeOf(raw, attribute);
  return typeof key === 'string' || typeof key === 'number' ? key : '';
}

/** By code units, not by a locale: every machine must list models in the same order. */
function byPriorityThenId(a: ChannelRow, b: ChannelRow): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  if (a.id === b.id) return 0;
  return a.id < b.id ? -1 : 1;
}
