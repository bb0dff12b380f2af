import * as z from 'zod/mini';
import {
  flag,
  modelName,
  daysUpTo,
  optionMap,
  text,
  time,
  textList,
  integerBetween,
  positiveInteger,
  rowId,
  secondsUpTo,
  attributeOf,
  readRow,
  type RowReading,
} from './rows/read-row.ts';
import {
  type AliasSettings,
  type AlertSettings,
  type PublicNotice,
  type PaymentSettings,
  type SearchSettings,
  defaultSettings,
  type Settings,
} from './settings.ts';
import { endpointProblem, normaliseEndpoint } from '../upstreams/endpoint-rules.ts';
import { referenceProblem, type ReferenceRules } from './rows/secret-reference.ts';
import { ambiguousCurrency, rateDecimals } from '../billing/payments.ts';
import { parseDecimal } from '../billing/amount.ts';
import { isTimeZone } from '../billing/budget-period.ts';
import { explainIssues } from '../wire/json.ts';
import type { StandIn, TableReader } from './rows/read-table.ts';

/** Each model that may answer is estimated before the call, and three are asked at most. */
const modelsMax = 8;
const wantedModels = `a list of 1 to ${modelsMax} model names, in the order in which they are tried`;
const wantedAlias = `${wantedModels}, or a map {models, on_context_length}`;
const wantedAliases = 'a map from public names to lists of models';

const models = z
  .array(modelName, wantedModels)
  .check(z.minLength(1, wantedModels), z.maxLength(modelsMax, wantedModels));

/** The parts of a requested name that are no part of a model's name are taken off before an alias is looked up. */
const wantedName = 'a name that does not begin with web- or end in -official';
const aliasName = modelName.check(z.refine((name) => !/^web-|-official$/.test(name), wantedName));

/** The setting `aliases`: public names that stand for several models. */
const AliasesValue = z.record(
  aliasName,
  z.union(
    [
      z.pipe(
        models,
        z.transform((list: string[]) => ({ models: list, on_context_length: false })),
      ),
      z.strictObject({ models, on_context_length: z._default(flag, false) }),
    ],
    wantedAlias,
  ),
  wantedAliases,
);
type AliasesValue = z.infer<typeof AliasesValue>;

/** Checks the rules beyond the schema. */
function readAliases(value: AliasesValue): { problem: string } | { aliases: AliasSettings[] } {
  const names = new Set(Object.keys(value));
  for (const [name, alias] of Object.entries(value)) {
    const again = alias.models.find((model, at) => alias.models.indexOf(model) < at);
    if (again !== undefined)
      return { problem: `value.${name}: found ${again} twice, wanted each model once` };
    const inner = alias.models.findIndex((model) => names.has(model));
    if (inner >= 0)
      return {
        problem: `value.${name}: found the alias ${alias.models[inner]}, wanted models: an alias cannot stand for an alias`,
      };
  }
  return {
    aliases: Object.entries(value).map(([name, alias]) => ({
      name,
      models: alias.models,
      onContextLength: alias.on_context_length,
    })),
  };
}

/** The setting `alerts`: whom the relay tells about accounts, and how long before a date. */
const AlertsValue = optionMap(
  {
    /** The operators' receiver: an address under the rules of a channel's endpoint. */
    webhook: z.optional(text),
    /** A secret reference, as in channels. It signs what is posted, to customers too. */
    secret: z.optional(text),
    plan_days: z._default(daysUpTo(90), 7),
    key_days: z._default(daysUpTo(90), 7),
  },
  'a map {webhook, secret, plan_days, key_days}',
);
type AlertsValue = z.infer<typeof AlertsValue>;

/** Checks the rules beyond the schema. */
function readAlerts(
  { webhook, secret, plan_days: planDays, key_days: keyDays }: AlertsValue,
  rules: ReferenceRules,
): { problem: string } | { alerts: AlertSettings } {
  const wrongAddress = webhook === undefined ? undefined : endpointProblem(webhook, rules);
  if (wrongAddress !== undefined) return { problem: `value.webhook: ${wrongAddress}` };
  const wrongSecret = secret === undefined ? undefined : referenceProblem(secret, rules);
  if (wrongSecret !== undefined) return { problem: `value.secret: ${wrongSecret}` };
  if (webhook !== undefined && secret === undefined)
    return { problem: 'value.secret: found nothing, wanted a secret reference: what is posted is signed' };
  return { alerts: { webhook, secret, planDays, keyDays } };
}

/** All of them are in every page and in every answer about an account. */
const noticesMax = 20;
const charactersMax = 500;
const noticesSettingModelsMax = 100;
const wantedNotices = `a list of at most ${noticesMax} maps {text, from, until, models}`;
const wantedText = `a text of at most ${charactersMax} characters`;
const noticesSettingWantedModels = `a list (or a string set) of 1 to ${noticesSettingModelsMax} model names`;

/** The setting `notices`: what customers are shown, on the page and with their account. */
const NoticesValue = z
  .array(
    z.strictObject(
      {
        text: text.check(z.maxLength(charactersMax, wantedText)),
        /** Shown from then on. Absent: at once. */
        from: z.optional(time),
        /** Not shown from then on. Absent: until it is taken out. */
        until: z.optional(time),
        /** The models that it is about. Absent: all. */
        models: z.optional(
          z
            .array(modelName, noticesSettingWantedModels)
            .check(
              z.minLength(1, noticesSettingWantedModels),
              z.maxLength(noticesSettingModelsMax, noticesSettingWantedModels),
            ),
        ),
      },
      'a map {text, from, until, models}',
    ),
    wantedNotices,
  )
  .check(z.maxLength(noticesMax, wantedNotices));

/** Checks the rules beyond the schema. */
function readNotices(value: z.infer<typeof NoticesValue>): { problem: string } | { notices: PublicNotice[] } {
  const wrong = value.findIndex(
    ({ from, until }) => from !== undefined && until !== undefined && until <= from,
  );
  if (wrong >= 0)
    return { problem: `value[${wrong}].until: found a time that is not after from, wanted a later one` };
  return {
    notices: value.map(({ text: said, from, until, models }) => ({
      text: said,
      ...(from !== undefined && { fromMs: from }),
      ...(until !== undefined && { untilMs: until }),
      ...(models !== undefined && { models }),
    })),
  };
}

const wantedSecret = 'a reference, or a list of references';
const wantedRates = 'a map of currencies in small letters to yuan, such as {"usd": 7.1}';
const wantedRate = `yuan for one unit of the currency: a number above 0 with at most ${rateDecimals} decimals`;

const secret = z.union([text, textList.check(z.minLength(1, wantedSecret))], wantedSecret);
const currency = z.string(wantedRates).check(z.regex(/^[a-z]{3}$/, wantedRates));

/** Kept as text, because a float would not hold it exactly. */
const rate = z.pipe(
  z.pipe(
    z.union([z.number(), z.string()], wantedRate),
    z.transform((written: number | string) => String(written).trim()),
  ),
  z.string(wantedRate).check(z.refine(isRate, wantedRate)),
);

function isRate(written: string): boolean {
  const micro = parseDecimal(written, rateDecimals, true);
  return micro !== undefined && micro > 0n && micro < 10n ** 12n;
}

/** The setting `payments`: money in by machine. */
const PaymentsValue = z.strictObject(
  {
    stripe: z.strictObject(
      {
        /** true: real payments count. false: those of Stripe's test mode. */
        live: flag,
        /** The signing secret of the webhook's endpoint; while it is rotated, the old one and the new one. */
        webhook_secret: secret,
        /** Signs the references of checkouts. Of a list, the last signs and all are accepted. */
        link_secret: secret,
        rates: z.record(currency, rate, wantedRates),
        /** What to do with payments that carry no reference of this relay. */
        unsigned: z._default(z.enum(['park', 'ignore'], '"park" or "ignore"'), 'park'),
      },
      'a map {live, webhook_secret, link_secret, rates, unsigned}',
    ),
  },
  'a map {stripe}',
);
type PaymentsValue = z.infer<typeof PaymentsValue>;

/** Checks the rules beyond the schema. Secrets follow the same rules as a channel's. */
function readPayments(
  { stripe }: PaymentsValue,
  rules: ReferenceRules,
): { problem: string } | { payments: PaymentSettings } {
  const webhookSecrets = [stripe.webhook_secret].flat();
  const linkSecrets = [stripe.link_secret].flat();
  const named = { webhook_secret: webhookSecrets, link_secret: linkSecrets };
  for (const [name, references] of Object.entries(named))
    for (const reference of references) {
      const problem = referenceProblem(reference, rules);
      if (problem !== undefined) return { problem: `value.stripe.${name}: ${problem}` };
    }
  if (Object.hasOwn(stripe.rates, ambiguousCurrency)) {
    const wanted = 'no rate for it, since Stripe describes its amounts both with and without decimals';
    return { problem: `value.stripe.rates.${ambiguousCurrency}: found a rate, wanted ${wanted}` };
  }
  const { live, rates, unsigned } = stripe;
  return { payments: { stripe: { live, webhookSecrets, linkSecrets, rates, unsigned } } };
}

const wantedLanguage = 'a language code such as "en" or "zh-CN"';
const resultsWanted = 'a whole number from 1 to 10';

/** The setting `search`: the search provider for models whose name starts with `web-`. */
const SearchValue = z.strictObject(
  {
    type: z.enum(['searxng', 'tavily'], '"searxng" or "tavily"'),
    /** The base address. Optional for Tavily, which has a default. */
    endpoint: z.optional(text),
    /** A secret reference, as in channels. Absent: no credentials are sent. */
    secret: z.optional(text),
    /** The number of results put into the prompt; fewer if they do not fit. */
    results: z._default(integerBetween(1, 10, resultsWanted), 5),
    /** Only for SearXNG. */
    language: z.optional(
      z.string(wantedLanguage).check(z.regex(/^[A-Za-z]{2,3}(-[A-Za-z]{2,4})?$/, wantedLanguage)),
    ),
  },
  'a map {type, endpoint, secret, results, language}',
);
type SearchValue = z.infer<typeof SearchValue>;

const tavilyEndpoint = 'https://api.tavily.com';

/** Checks the rules beyond the schema. Address and secret follow the same rules as a channel's. */
function readSearch(
  { endpoint, ...value }: SearchValue,
  rules: ReferenceRules,
): { problem: string } | { search: SearchSettings } {
  const address = endpoint ?? (value.type === 'tavily' ? tavilyEndpoint : undefined);
  if (address === undefined)
    return { problem: 'value.endpoint: found nothing, wanted the address of SearXNG' };
  const wrongEndpoint = endpointProblem(address, rules);
  if (wrongEndpoint !== undefined) return { problem: `value.endpoint: ${wrongEndpoint}` };
  const wrongSecret = value.secret === undefined ? undefined : referenceProblem(value.secret, rules);
  if (wrongSecret !== undefined) return { problem: `value.secret: ${wrongSecret}` };
  if (value.type === 'tavily' && value.language !== undefined) {
    return { problem: 'value.language: found one, but only searxng takes a language' };
  }
  return { search: { ...value, endpoint: normaliseEndpoint(address).replace(/\/search$/, '') } };
}

const { days, eventMinutes } = defaultSettings.store;

/** The setting `store`: true or false for all keys, or a map that also says how long what is stored is kept. */
const StoreValue = z.union(
  [
    flag,
    optionMap({
      all_keys: z._default(flag, true),
      days: z._default(daysUpTo(365), days),
      event_minutes: z._default(positiveInteger, eventMinutes),
    }),
  ],
  'true, false, or a map {all_keys, days, event_minutes}',
);

const readStore = (value: z.infer<typeof StoreValue>): Partial<Settings> =>
  typeof value === 'boolean'
    ? { store: { ...defaultSettings.store, allKeys: value } }
    : { store: { allKeys: value.all_keys, days: value.days, eventMinutes: value.event_minutes } };

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
