import * as z from 'zod/mini';
import { explainIssues } from '../../wire/issue-sentence.ts';
import { attributeOf, readRow } from '../rows/read-row.ts';
import type { RowReading } from '../rows/read-row.ts';
import type { StandIn, TableReader } from './read-table.ts';
import { readAliases } from '../settings/aliases-setting.ts';
import { readAlerts } from '../settings/alerts-setting.ts';
import { readNotices } from '../settings/notices-setting.ts';
import { readPayments } from '../settings/payments-setting.ts';
import type { ReferenceRules } from '../rows/secret-reference.ts';
import { readStore } from '../settings/store-setting.ts';
import { readSearch } from '../settings/search-setting.ts';
import { SettingRow, settingValues } from '../settings/setting-row.ts';
import type { Settings } from '../settings/settings.ts';

type SettingName = keyof typeof settingValues;
type Values = { [Name in SettingName]: z.infer<(typeof settingValues)[Name]> };

/** The settings that a value changes, or why it is not used. */
type ReadValue<Value> = (value: Value, rules: ReferenceRules) => Partial<Settings> | { problem: string };

const settingsOf: { [Name in SettingName]: ReadValue<Values[Name]> } = {
  relay_closed: (relayClosed) => ({ relayClosed }),
  'subscription.enabled': (subscriptionEnabled) => ({ subscriptionEnabled }),
  unpriced_models: (unpricedModels) => ({ unpricedModels }),
  contact: (contact) => ({ contact }),
  page: (page) => ({ page }),
  account_page: (accountPage) => ({ accountPage }),
  notices: readNotices,
  cors_origins: (corsOrigins) => ({ corsOrigins }),
  time_zone: (timeZone) => ({ timeZone }),
  content_urls: (contentUrls) => ({ contentUrls }),
  limits: (limits) => ({
    limits: {
      defaultOutputTokens: limits.default_output_tokens,
      requestSeconds: limits.request_seconds,
      stateDays: limits.state_days,
      countFree: limits.count_free,
      accountConcurrency: limits.account_concurrency,
      accountRpm: limits.account_rpm,
      accountTpm: limits.account_tpm,
    },
  }),
  aliases: readAliases,
  store: readStore,
  search: readSearch,
  alerts: readAlerts,
  payments: readPayments,
};

/** Reads one row of `settings`. Returns the settings that the row changes. */
export function readSetting(
  raw: unknown,
  rules: ReferenceRules = { local: false },
): RowReading<Partial<Settings>> {
  const reading = readRow(SettingRow, raw);
  if ('problem' in reading) return reading;
  const { name, value } = reading.row;
  if (!isSettingName(name)) {
    return { problem: `name: not a setting; the settings are ${Object.keys(settingValues).join(', ')}` };
  }
  const schema: z.ZodMiniType<{ value: unknown }> = z.strictObject({ value: settingValues[name] });
  const parsed = z.safeParse(schema, { value });
  if (!parsed.success) return { problem: explainIssues(parsed.error.issues, { value }) };
  const read = (settingsOf[name] as ReadValue<unknown>)(parsed.data.value, rules);
  return 'problem' in read ? read : { row: read };
}

const isSettingName = (name: string): name is SettingName => Object.hasOwn(settingValues, name);

export const settingReader = (rules: ReferenceRules): TableReader<Partial<Settings>> => ({
  table: 'settings',
  read: (raw) => readSetting(raw, rules),
  standIn: ({ raw }) => safeSettings.get(attributeOf(raw, 'name')),
});

/**
 * Safe values of switches, used while a switch's row cannot be read: the operator may have meant to close the
 * relay, so it must not stay open.
 */
const safeSettings = new Map<unknown, StandIn>([
  [
    'relay_closed',
    {
      raw: { name: 'relay_closed', value: true },
      said: 'until this can be read, the relay is closed',
    },
  ],
  [
    'subscription.enabled',
    {
      raw: { name: 'subscription.enabled', value: false },
      said: 'until this can be read, subscriptions are off',
    },
  ],
  [
    'unpriced_models',
    {
      raw: { name: 'unpriced_models', value: 'refuse' },
      said: 'until this can be read, models without a price are refused',
    },
  ],
  [
    'store',
    {
      raw: { name: 'store', value: false },
      said: 'until this can be read, only keys that say store themselves may store',
    },
  ],
]);
