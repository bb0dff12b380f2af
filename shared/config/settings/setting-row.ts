import * as z from 'zod/mini';
import { isTimeZone } from '../../billing/budget-period.ts';
import {
  daysUpTo,
  flag,
  optionMap,
  positiveInteger,
  rowId,
  secondsUpTo,
  text,
  textList,
} from '../rows/attribute-schemas.ts';
import { AliasesValue } from './aliases-setting.ts';
import { NoticesValue } from './notices-setting.ts';
import { PaymentsValue } from './payments-setting.ts';
import { StoreValue } from './store-setting.ts';
import { SearchValue } from './search-setting.ts';
import { defaultSettings } from './settings.ts';
import { AlertsValue } from './alerts-setting.ts';

/** A scheme, or a scheme and more of the URL. A host is whole, up to its slash: else it could go on as another name. */
const urlBeginning = /^[a-z][a-z0-9+.-]*:(\/\/[^\s/?#@\\]+\/\S*|[^\s/]\S*)?$/;
const wantedBeginning = 'beginnings of URLs, such as "https:", "data:image/", "http://images.example.com/"';

/**
 * The table `settings`: each row is {name, value}. There is one schema for each name; an unknown name is a
 * problem. A switch that cannot be read gets its safe value: the relay is closed, subscriptions are off.
 */
export const settingValues = {
  relay_closed: flag,
  'subscription.enabled': flag,
  unpriced_models: z.enum(['free', 'refuse'], '"free" or "refuse"'),
  contact: z.string('a text'),
  page: flag,
  account_page: flag,
  notices: NoticesValue,
  cors_origins: textList,
  time_zone: text.check(z.refine(isTimeZone, 'the name of a time zone, such as "Asia/Shanghai"')),
  content_urls: z.array(
    text.check(z.toLowerCase(), z.regex(urlBeginning, wantedBeginning)),
    'a list (or a string set) of beginnings of URLs',
  ),
  limits: optionMap(
    {
      default_output_tokens: z._default(positiveInteger, defaultSettings.limits.defaultOutputTokens),
      request_seconds: z._default(secondsUpTo(890), defaultSettings.limits.requestSeconds),
      state_days: z._default(daysUpTo(90), defaultSettings.limits.stateDays),
      count_free: z._default(flag, true),
      account_concurrency: z.optional(positiveInteger),
      account_rpm: z.optional(positiveInteger),
      account_tpm: z.optional(positiveInteger),
    },
    'a map {default_output_tokens, request_seconds, state_days, count_free, account_concurrency, account_rpm, account_tpm}',
  ),
  aliases: AliasesValue,
  store: StoreValue,
  search: SearchValue,
  alerts: AlertsValue,
  payments: PaymentsValue,
} as const;

/** A value that is not there is for the schema of its name to refuse. */
export const SettingRow = z.strictObject({ name: rowId, value: z.optional(z.unknown()) });
export type SettingRow = z.infer<typeof SettingRow>;
