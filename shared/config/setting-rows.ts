import * as z from 'zod/mini';
import {
  amount,
  flag,
  modelName,
  daysUpTo,
  optionMap,
  text,
  listOf,
  time,
  textList,
  integerBetween,
  positiveInteger,
  rowId,
  secondsUpTo,
  attributeOf,
  readRow,
  acceptRow,
  type RowReading,
} from './rows/read-row.ts';
import { defaultSettings, type Settings } from './settings.ts';
import { findEndpointProblem, hostOf, normaliseEndpoint } from '../upstreams/endpoint-rules.ts';
import {
  checkReferences,
  type NamedSecret,
  type ReferenceRules,
  type SecretPurpose,
} from './rows/secret-reference.ts';
import { ambiguousCurrency, rateDecimals } from '../billing/payments.ts';
import { parseDecimal, parseYuan } from '../billing/price.ts';
import { isTimeZone } from '../billing/budget-period.ts';
import { explainIssues } from '../wire/json.ts';
import type { TableReader } from './rows/read-table.ts';

/** Each model that may answer is estimated before the call, and three are asked at most. */
const modelsMax = 8;
const wantedModels = `a list of 1 to ${modelsMax} model names, in the order to try them`;
const wantedAliases = 'a map from public names to lists of models';

const models = listOf(modelName, modelsMax, wantedModels);

/** The parts of a requested name that are no part of a model's name are taken off before an alias is looked up. */
const aliasName = modelName.check(
  z.refine(
    (name) => !/^web-|-official$/.test(name),
    'a name that does not start with web- or end in -official',
  ),
);

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
    `${wantedModels}, or a map {models, on_context_length}`,
  ),
  wantedAliases,
);

function readAliases(value: z.infer<typeof AliasesValue>): Reading {
  for (const [name, alias] of Object.entries(value)) {
    const again = alias.models.find((model, at) => alias.models.indexOf(model) < at);
    if (again) return { problem: `value.${name}: found ${again} twice, expected each model once` };
    const inner = alias.models.find((model) => Object.hasOwn(value, model));
    if (inner)
      return {
        problem: `value.${name}: found the alias ${inner}, expected only models`,
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

function readAlerts(value: z.infer<typeof AlertsValue>, rules: ReferenceRules): Reading {
  const { webhook, secret, plan_days: planDays, key_days: keyDays } = value;
  const unsigned = webhook && 'missing, expected a secret reference to sign webhooks with';
  return (
    firstProblem({
      webhook: webhook && findEndpointProblem(webhook, rules),
      secret: secret === undefined && unsigned,
    }) ?? { alerts: { webhook, secret, planDays, keyDays } }
  );
}

/** All of them are in every page and in every answer about an account. */
const noticesMax = 20;
const charactersMax = 500;
const noticeModelsMax = 100;
const wantedNotices = `a list of at most ${noticesMax} maps {text, from, until, models}`;

const NoticesValue = z
  .array(
    z.strictObject(
      {
        text: text.check(z.maxLength(charactersMax, `a text of at most ${charactersMax} characters`)),
        from: z.optional(time),
        until: z.optional(time),
        models: z.optional(
          listOf(
            modelName,
            noticeModelsMax,
            `a list (or a string set) of 1 to ${noticeModelsMax} model names`,
          ),
        ),
      },
      'a map {text, from, until, models}',
    ),
    wantedNotices,
  )
  .check(z.maxLength(noticesMax, wantedNotices));

function readNotices(value: z.infer<typeof NoticesValue>): Reading {
  const wrong = value.findIndex(({ from = -Infinity, until = Infinity }) => until <= from);
  if (wrong >= 0) return { problem: `value[${wrong}].until: must be later than from` };
  return {
    notices: value.map(({ text: said, from, until, models: about }) => ({
      text: said,
      ...(from !== undefined && { fromMs: from }),
      ...(until !== undefined && { untilMs: until }),
      ...(about !== undefined && { models: about }),
    })),
  };
}

const SellerValue = z.strictObject(
  {
    name: text.check(z.maxLength(200, 'a text of at most 200 characters')),
    /** Lines. */
    address: text.check(z.maxLength(charactersMax, `a text of at most ${charactersMax} characters`)),
  },
  'a map {name, address}',
);

/** Every function holds them: of 300 models some 60 KB. */
const factsMax = 500;
const wantedFacts = `a map of at most ${factsMax} models to {context, output, takes, makes, about}`;
const wantedKinds = 'a list of "text", "image", "audio", "video", "file", "embedding"';
const kinds = z.optional(
  z.array(z.enum(['text', 'image', 'audio', 'video', 'file', 'embedding'], wantedKinds), wantedKinds),
);
const ModelFactsValue = z
  .record(
    modelName,
    z.strictObject(
      {
        context: z.optional(positiveInteger),
        output: z.optional(positiveInteger),
        takes: kinds,
        makes: kinds,
        about: z.optional(
          text.check(z.maxLength(charactersMax, `a text of at most ${charactersMax} characters`)),
        ),
      },
      'a map {context, output, takes, makes, about}',
    ),
    wantedFacts,
  )
  .check(z.refine((facts) => Object.keys(facts).length <= factsMax, wantedFacts));

const wantedSecret = 'a reference, or a list of references';
const wantedRates = 'a map of lower-case currencies to yuan, such as {"usd": 7.1}';
const wantedRate = `yuan per unit of the currency: a number above 0 with at most ${rateDecimals} decimals`;

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
        /** Sessions of checkouts that the relay makes for customers who ask. */
        checkout: z.optional(
          z.strictObject(
            { secret_key: text, currency, endpoint: z._default(text, 'https://api.stripe.com') },
            'a map {secret_key, currency, endpoint}',
          ),
        ),
      },
      'a map {live, webhook_secret, link_secret, rates, unsigned, checkout}',
    ),
  },
  'a map {stripe}',
);

function readPayments({ stripe }: z.infer<typeof PaymentsValue>, rules: ReferenceRules): Reading {
  const { live, rates, unsigned, checkout: asked } = stripe;
  const checkout = asked && {
    secretKey: asked.secret_key,
    currency: asked.currency,
    endpoint: normaliseEndpoint(asked.endpoint),
  };
  const [webhookSecrets, linkSecrets] = [[stripe.webhook_secret].flat(), [stripe.link_secret].flat()];
  return (
    firstProblem({
      [`stripe.rates.${ambiguousCurrency}`]:
        rates[ambiguousCurrency] &&
        'found a rate, but Stripe documents this currency both with and without decimals: remove it',
      'stripe.checkout.currency':
        checkout &&
        !Object.hasOwn(rates, checkout.currency) &&
        'found a currency without a rate, expected one of rates',
      'stripe.checkout.endpoint': checkout && findEndpointProblem(checkout.endpoint, rules),
    }) ?? {
      payments: {
        stripe: { live, webhookSecrets, linkSecrets, rates, unsigned, ...(checkout && { checkout }) },
      },
    }
  );
}

const wantedTopUpUrl = 'an https URL, with {account} as an optional placeholder';
const TopUpUrlValue = text.check(z.maxLength(2_000, wantedTopUpUrl), z.refine(isTopUpUrl, wantedTopUpUrl));

function isTopUpUrl(written: string): boolean {
  const url = URL.parse(written);
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '') return false;
  return !/[{}\s]/.test(url.host + written.replaceAll('{account}', ''));
}

const wantedSearchAmount = 'yuan per search: a number of 0 or more with at most 9 decimals, such as 0.08';
/** Exact in nano-yuan, so the charge of a call needs no second rounding. */
const searchAmount = amount.check(z.refine((yuan) => parseYuan(yuan) !== undefined, wantedSearchAmount));

const wantedLanguage = 'a language code such as "en" or "zh-CN"';

const SearchValue = z.strictObject(
  {
    type: z.enum(['searxng', 'tavily'], '"searxng" or "tavily"'),
    /** The base address. Optional for Tavily, which has a default. */
    endpoint: z.optional(text),
    /** A secret reference, as in channels. Absent: no credentials are sent. */
    secret: z.optional(text),
    /** The number of results put into the prompt; fewer if they do not fit. */
    results: z._default(integerBetween(1, 10, 'a whole number from 1 to 10'), 5),
    /** Only for SearXNG. */
    language: z.optional(
      z.string(wantedLanguage).check(z.regex(/^[A-Za-z]{2,3}(-[A-Za-z]{2,4})?$/, wantedLanguage)),
    ),
    price: z.optional(searchAmount),
    /** What the provider bills the operator. */
    cost: z.optional(searchAmount),
    per_minute: z.optional(positiveInteger),
  },
  'a map {type, endpoint, secret, results, language, price, cost, per_minute}',
);

const tavilyEndpoint = 'https://api.tavily.com';

function readSearch(value: z.infer<typeof SearchValue>, rules: ReferenceRules): Reading {
  const { per_minute: perMinute, ...settings } = value;
  const isTavily = value.type === 'tavily';
  const endpoint = value.endpoint ?? (isTavily ? tavilyEndpoint : '');
  return (
    firstProblem({
      endpoint:
        endpoint === '' ? 'missing, expected the address of SearXNG' : findEndpointProblem(endpoint, rules),
      language: isTavily && value.language && 'not supported by tavily',
    }) ?? {
      search: {
        ...settings,
        endpoint: normaliseEndpoint(endpoint).replace(/\/search$/, ''),
        ...(perMinute && { perMinute }),
      },
    }
  );
}

const { days, eventMinutes } = defaultSettings.store;

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

const readStore = (value: z.infer<typeof StoreValue>): Reading =>
  typeof value === 'boolean'
    ? { store: { ...defaultSettings.store, allKeys: value } }
    : { store: { allKeys: value.all_keys, days: value.days, eventMinutes: value.event_minutes } };

export const LimitsValue = optionMap(
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
);

const readLimits = (limits: z.infer<typeof LimitsValue>): Reading => ({
  limits: {
    defaultOutputTokens: limits.default_output_tokens,
    requestSeconds: limits.request_seconds,
    stateDays: limits.state_days,
    countFree: limits.count_free,
    accountConcurrency: limits.account_concurrency,
    accountRpm: limits.account_rpm,
    accountTpm: limits.account_tpm,
  },
});

/** A scheme, or a scheme and more of the URL. A host is whole, up to its slash: else it could go on as another name. */
const urlBeginning = /^[a-z][a-z0-9+.-]*:(\/\/[^\s/?#@\\]+\/\S*|[^\s/]\S*)?$/;
const wantedBeginning = 'URL prefixes such as "https:", "data:image/", "http://images.example.com/"';
const ContentUrlsValue = z.array(
  text.check(z.toLowerCase(), z.regex(urlBeginning, wantedBeginning)),
  'a list (or a string set) of URL prefixes',
);
const EndUsersValue = optionMap({ hash_accounts: z._default(flag, true) }, 'a map {hash_accounts}');
const TimeZoneValue = text.check(z.refine(isTimeZone, 'the name of a time zone, such as "Asia/Shanghai"'));

/** The settings that a value changes, or why it is not used. */
type Reading = Partial<Settings> | { problem: string };

/** The first problem that a value has, by the path in it. */
function firstProblem(problems: Record<string, string | false | undefined>): { problem: string } | undefined {
  const first = Object.entries(problems).find(([, problem]) => problem);
  return first && { problem: `value.${first[0]}: ${first[1]}` };
}

/** What a setting is while its row cannot be read, and how its problem says so. */
interface SafeValue {
  value: unknown;
  said: string;
}

const setting = <Value>(
  value: z.ZodMiniType<Value>,
  read: (value: Value, rules: ReferenceRules) => Reading,
  safe?: SafeValue,
) => ({ value, read, safe });

/**
 * The table `settings`: each row is {name, value}, an unknown name is a problem. Here, by name: the schema of the value,
 * what is set by it, and the safe value of a switch: the operator may have meant to close the relay, so it must not stay
 * open while its row cannot be read.
 */
export const settingTable = {
  relay_closed: setting(flag, (relayClosed) => ({ relayClosed }), {
    value: true,
    said: 'the relay is closed',
  }),
  'subscription.enabled': setting(flag, (subscriptionEnabled) => ({ subscriptionEnabled }), {
    value: false,
    said: 'subscriptions are disabled',
  }),
  unpriced_models: setting(
    z.enum(['free', 'refuse'], '"free" or "refuse"'),
    (unpricedModels) => ({ unpricedModels }),
    { value: 'refuse', said: 'calls to models without a price are rejected' },
  ),
  contact: setting(z.string('a text'), (contact) => ({ contact })),
  page: setting(flag, (page) => ({ page })),
  account_page: setting(flag, (accountPage) => ({ accountPage })),
  notices: setting(NoticesValue, readNotices),
  seller: setting(SellerValue, (seller) => ({ seller })),
  model_facts: setting(ModelFactsValue, (modelFacts) => ({ modelFacts })),
  cors_origins: setting(textList, (corsOrigins) => ({ corsOrigins })),
  time_zone: setting(TimeZoneValue, (timeZone) => ({ timeZone })),
  end_users: setting(EndUsersValue, (value) => ({ endUsers: { hashAccounts: value.hash_accounts } })),
  content_urls: setting(ContentUrlsValue, (contentUrls) => ({ contentUrls })),
  limits: setting(LimitsValue, readLimits),
  aliases: setting(AliasesValue, readAliases),
  store: setting(StoreValue, readStore, {
    value: false,
    said: 'only keys with store set to true store responses',
  }),
  search: setting(SearchValue, readSearch),
  alerts: setting(AlertsValue, readAlerts),
  payments: setting(PaymentsValue, readPayments),
  top_up_url: setting(TopUpUrlValue, (topUpUrl) => ({ topUpUrl })),
};

/** A value that is not there is for the schema of its name to refuse. */
export const SettingRow = z.strictObject({ name: rowId, value: z.optional(z.unknown()) });

/** Reads one row of `settings`. Returns the settings that the row changes. */
export function readSetting(
  raw: unknown,
  rules: ReferenceRules = { local: false },
): RowReading<Partial<Settings>> {
  const reading = readRow(SettingRow, raw);
  if ('problem' in reading) return reading;
  const { name, value } = reading.row;
  const known = settingOf(name);
  if (!known) return { problem: `name: unknown setting; known are ${Object.keys(settingTable).join(', ')}` };
  const schema = z.strictObject({ value: known.value });
  const parsed = z.safeParse(schema, { value });
  if (!parsed.success) return { problem: explainIssues(parsed.error.issues, { value }, schema) };
  const read = known.read(parsed.data.value as never, rules);
  if ('problem' in read) return read;
  const { problems, warnings } = checkReferences(listSettingSecrets(read), rules);
  return problems[0] === undefined ? acceptRow(read, warnings) : { problem: problems[0] };
}

/** The secrets that settings name. Those without a host only sign. */
export function listSettingSecrets({ alerts, search, payments }: Partial<Settings>): NamedSecret[] {
  const { webhookSecrets = [], linkSecrets = [], checkout } = payments?.stripe ?? {};
  return [
    ...namedBy('alerts', 'secret', alerts?.secret),
    ...namedBy('search', 'secret', search?.secret, search?.endpoint),
    ...namedBy('payments', 'stripe.webhook_secret', webhookSecrets),
    ...namedBy('payments', 'stripe.link_secret', linkSecrets),
    ...namedBy('payments', 'stripe.checkout.secret_key', checkout?.secretKey, checkout?.endpoint),
  ];
}

function namedBy(
  row: 'alerts' | 'payments' | 'search',
  path: string,
  references: string | string[] = [],
  sentTo?: string,
): NamedSecret[] {
  const host = sentTo === undefined ? undefined : hostOf(sentTo);
  const at = `value.${path}`;
  return [references].flat().map((reference) => ({ row, purpose: row, at, reference, host }));
}

/** The purpose of each reference in rows of settings, invalid rows included. If two rows name it, payments wins. */
export function findReferenceOwners(
  rows: readonly unknown[],
  deployed: ReferenceRules['owners'] = new Map(),
): NonNullable<ReferenceRules['owners']> {
  const owners = new Map<string, SecretPurpose>();
  for (const purpose of ['search', 'alerts', 'payments'] as const)
    for (const raw of rows.filter((each) => attributeOf(each, 'name') === purpose))
      for (const reference of findReferences(attributeOf(raw, 'value'))) owners.set(reference, purpose);
  return new Map([...owners, ...deployed]);
}

/** All texts at any depth that look like references. */
export function findReferences(value: unknown): string[] {
  if (typeof value === 'string') return /^\s*(ssm|secretsmanager|env):/.test(value) ? [value.trim()] : [];
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return [];
  return (value instanceof Set ? [...value] : Object.values(value)).flatMap(findReferences);
}

const settingOf = (name: unknown) =>
  Object.hasOwn(settingTable, String(name)) ? settingTable[name as keyof typeof settingTable] : undefined;

export const createSettingReader = (rules: ReferenceRules): TableReader<Partial<Settings>> => ({
  table: 'settings',
  read: (raw) => readSetting(raw, rules),
  findReplacement({ raw }) {
    const name = attributeOf(raw, 'name');
    const safe = settingOf(name)?.safe;
    return safe && { raw: { name, value: safe.value }, notice: `until it is fixed, ${safe.said}` };
  },
});
