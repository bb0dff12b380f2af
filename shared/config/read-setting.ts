import * as z from 'zod/mini';
import { explainIssues } from './explain.ts';
import { attributeOf, lastGoodVersion, readRow } from './read-row.ts';
import type { RowReading } from './read-row.ts';
import type { StandIn, TableReader } from './read-table.ts';
import { SettingRow, settingValues } from './setting-row.ts';
import type { Settings } from './settings.ts';

type SettingName = keyof typeof settingValues;
type Values = { [Name in SettingName]: z.infer<(typeof settingValues)[Name]> };

const settingsOf: { [Name in SettingName]: (value: Values[Name]) => Partial<Settings> } = {
  relay_closed: (relayClosed) => ({ relayClosed }),
  'subscription.enabled': (subscriptionEnabled) => ({ subscriptionEnabled }),
  unpriced_models: (unpricedModels) => ({ unpricedModels }),
  contact: (contact) => ({ contact }),
  page: (page) => ({ page }),
  cors_origins: (corsOrigins) => ({ corsOrigins }),
  limits: (limits) => ({
    limits: { defaultOutputTokens: limits.default_output_tokens, requestSeconds: limits.request_seconds },
  }),
};

/** Reads one row of `settings`: the settings that it changes. */
export function readSetting(raw: unknown): RowReading<Partial<Settings>> {
  const reading = readRow(SettingRow, raw);
  if ('problem' in reading) return reading;
  const { name, value } = reading.row;
  if (!isSettingName(name)) {
    return { problem: `name: not a setting; the settings are ${Object.keys(settingValues).join(', ')}` };
  }
  return readValue(name, value);
}

export const settingReader: TableReader<Partial<Settings>> = {
  table: 'settings',
  read: readSetting,
  standIn: ({ raw, lastGood }) => safeSetting(attributeOf(raw, 'name')) ?? lastGoodVersion(lastGood),
};

/**
 * What holds while the row of a switch cannot be read: whoever wrote it may have meant to close the relay, so
 * it must not stay open. Undefined for a row that is no switch.
 */
function safeSetting(name: unknown): StandIn | undefined {
  if (name === 'relay_closed') {
    return { raw: { name, value: true }, said: 'until this can be read, the relay is closed' };
  }
  if (name === 'subscription.enabled') {
    return { raw: { name, value: false }, said: 'until this can be read, subscriptions are off' };
  }
  return undefined;
}

function readValue(name: SettingName, value: unknown): RowReading<Partial<Settings>> {
  const schema: z.ZodMiniType<{ value: unknown }> = z.strictObject({ value: settingValues[name] });
  const parsed = z.safeParse(schema, { value });
  if (!parsed.success) return { problem: explainIssues(parsed.error.issues, { value }) };
  const toSettings = settingsOf[name] as (value: unknown) => Partial<Settings>;
  return { row: toSettings(parsed.data.value) };
}

const isSettingName = (name: string): name is SettingName => Object.hasOwn(settingValues, name);
