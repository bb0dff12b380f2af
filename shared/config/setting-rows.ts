/**
 * The table `settings`: the schema of each value, the settings that it changes, and the secrets that it names. Values with a structure of
 * their own are in the folder's other setting files.
 */
import * as z from 'zod/mini';
import {
  flag,
  modelName,
  daysUpTo,
  optionMap,
  text,
  listOf,
  time,
  textList,
  positiveInteger,
  rowId,
  secondsUpTo,
  attributeOf,
  readRow,
  acceptRow,
  type RowReading,
} from './rows/read-row.ts';
import {
  AlertsValue,
  PaymentsValue,
  readAlerts,
  readPayments,
  readSearch,
  SearchValue,
  TopUpBonusValue,
  TopUpUrlValue,
  type SettingReading,
} from './service-settings.ts';
import { defaultSettings, type Settings } from './settings.ts';
import { hostOf } from '../upstreams/endpoint-rules.ts';
import {
  checkReferences,
  type NamedSecret,
  type ReferenceRules,
  type SecretPurpose,
} from './rows/secret-reference.ts';
import { isTimeZone } from '../billing/wall-clock.ts';
import { explainIssues } from '../wire/json.ts';
import type { TableReader } from './rows/read-table.ts';
import { customerPrices } from './rows/price-terms.ts';

/** Each model is estimated before the call, and at most three are tried. */
const modelsMax = 8;
const wantedModels = `a list of 1 to ${modelsMax} model names, in the order to try them`;
const wantedAliases = 'a map from public names to lists of models';

const models = listOf(modelName, modelsMax, wantedModels);

/** `web-` and `-official` are removed from a requested name before the alias is looked up. */
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

function readAliases(value: z.infer<typeof AliasesValue>): SettingReading {
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

/** Every page and every answer about an account contains all notices. */
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

function readNotices(value: z.infer<typeof NoticesValue>): SettingReading {
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
    address: text.check(z.maxLength(charactersMax, `a text of at most ${charactersMax} characters`)),
  },
  'a map {name, address}',
);

/** Every function keeps them in memory: some 60 KB for 300 models. */
export const factsMax = 500;
const wantedFacts = `a map of at most ${factsMax} models to {vendor, context, output, takes, makes, about}`;
const wantedKinds = 'a list of "text", "image", "audio", "video", "file", "embedding"';
const kinds = z.optional(
  z.array(z.enum(['text', 'image', 'audio', 'video', 'file', 'embedding'], wantedKinds), wantedKinds),
);
const ModelFactsValue = z
  .record(
    modelName,
    z.strictObject(
      {
        vendor: z.optional(text.check(z.maxLength(40, 'a name of at most 40 characters'))),
        context: z.optional(positiveInteger),
        output: z.optional(positiveInteger),
        takes: kinds,
        makes: kinds,
        about: z.optional(
          text.check(z.maxLength(charactersMax, `a text of at most ${charactersMax} characters`)),
        ),
      },
      'a map {vendor, context, output, takes, makes, about}',
    ),
    wantedFacts,
  )
  .check(z.refine((facts) => Object.keys(facts).length <= factsMax, wantedFacts));

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

const readStore = (value: z.infer<typeof StoreValue>): SettingReading =>
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

const readLimits = (limits: z.infer<typeof LimitsValue>): SettingReading => ({
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

/** A host must be complete, up to its slash, because otherwise it could continue as another name. */
const urlBeginning = /^[a-z][a-z0-9+.-]*:(\/\/[^\s/?#@\\]+\/\S*|[^\s/]\S*)?$/;
const wantedBeginning = 'URL prefixes such as "https:", "data:image/", "http://images.example.com/"';
const ContentUrlsValue = z.array(
  text.check(z.toLowerCase(), z.regex(urlBeginning, wantedBeginning)),
  'a list (or a string set) of URL prefixes',
);
const EndUsersValue = optionMap({ hash_accounts: z._default(flag, true) }, 'a map {hash_accounts}');
const TimeZoneValue = text.check(z.refine(isTimeZone, 'the name of a time zone, such as "Asia/Shanghai"'));

const PriceGroupsValue = z.record(
  text,
  customerPrices,
  'a map of names of groups to lists of prices, such as {"resellers": [{"models": ["*"], "factor": 0.8}]}',
);

const wantedLists = 'a map of vendors to {columns, per, currency}';
const wantedColumns =
  'a map of prices to column names, such as {"model": "Model", "input": "In", "output": "Out"}';
const PriceListsValue = z.record(
  text,
  z.strictObject(
    {
      columns: z.record(text, text, wantedColumns),
      /** The number of tokens that a price covers. */
      per: z.literal([1, 1000, 1_000_000], '1, 1000 or 1000000'),
      currency: z.enum(['cny', 'usd'], '"cny" or "usd"'),
    },
    wantedLists,
  ),
  wantedLists,
);
export type PriceMapping = z.infer<typeof PriceListsValue>[string];

/** The value while a row cannot be read, and how the row's problem says so. */
interface SafeValue {
  value: unknown;
  said: string;
}

const setting = <Value>(
  value: z.ZodMiniType<Value>,
  read: (value: Value, rules: ReferenceRules) => SettingReading,
  safe?: SafeValue,
) => ({ value, read, safe });

/**
 * Switches have a safe value: the operator may have meant to close the relay, so it must not stay open while its row cannot be read.
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
    { value: 'refuse', said: 'calls to models without a price are refused' },
  ),
  contact: setting(z.string('a text'), (contact) => ({ contact })),
  page: setting(flag, (page) => ({ page })),
  account_page: setting(flag, (accountPage) => ({ accountPage })),
  notices: setting(NoticesValue, readNotices),
  seller: setting(SellerValue, (seller) => ({ seller })),
  model_facts: setting(ModelFactsValue, (modelFacts) => ({ modelFacts })),
  cors_origins: setting(textList, (corsOrigins) => ({ corsOrigins })),
  time_zone: setting(TimeZoneValue, (timeZone) => ({ timeZone })),
  // Only imports read it.
  price_lists: setting(PriceListsValue, () => ({})),
  price_groups: setting(PriceGroupsValue, (priceGroups) => ({ priceGroups })),
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
  top_up_bonus: setting(TopUpBonusValue, (topUpBonus) => ({ topUpBonus })),
};

/** The schema of the name refuses a missing value. */
export const SettingRow = z.strictObject({ name: rowId, value: z.optional(z.unknown()) });

/** Returns the settings that the row changes. */
export function readSetting(
  raw: unknown,
  rules: ReferenceRules = { local: false },
): RowReading<Partial<Settings>> {
  const reading = readRow(SettingRow, raw);
  if ('problem' in reading) return reading;
  const { name, value } = reading.row;
  const known = findSetting(name);
  if (!known) return { problem: `name: unknown setting; use one of ${Object.keys(settingTable).join(', ')}` };
  const parsed = z.safeParse(known.value, value);
  if (!parsed.success) return { problem: explainInvalidValue(known.value, value, parsed.error.issues) };
  const read = known.read(parsed.data as never, rules);
  if ('problem' in read) return read;
  const { problems, warnings } = checkReferences(listSettingSecrets(read), rules);
  return problems[0] === undefined ? acceptRow(read, warnings) : { problem: problems[0] };
}

/** Builds a schema of the row for the message. Not for each read, because zod compiles a new schema, which takes longer than the read. */
function explainInvalidValue(
  schema: z.ZodMiniType,
  value: unknown,
  issues: readonly z.core.$ZodIssue[],
): string {
  const inRow = issues.map((issue) => ({ ...issue, path: ['value', ...issue.path] }));
  return explainIssues(inRow, { value }, z.strictObject({ value: schema }));
}

/** Secrets without a host only sign. */
export function listSettingSecrets({ alerts, search, payments }: Partial<Settings>): NamedSecret[] {
  const { webhookSecrets = [], linkSecrets = [], checkout } = payments?.stripe ?? {};
  return [
    ...listSecrets('alerts', 'secret', alerts?.secret),
    ...listSecrets('search', 'secret', search?.secret, search?.endpoint),
    ...listSecrets('payments', 'stripe.webhook_secret', webhookSecrets),
    ...listSecrets('payments', 'stripe.link_secret', linkSecrets),
    ...listSecrets('payments', 'stripe.checkout.secret_key', checkout?.secretKey, checkout?.endpoint),
  ];
}

function listSecrets(
  row: 'alerts' | 'payments' | 'search',
  path: string,
  references: string | string[] = [],
  sentTo?: string,
): NamedSecret[] {
  const host = sentTo === undefined ? undefined : hostOf(sentTo);
  const at = `value.${path}`;
  return [references].flat().map((reference) => ({ row, purpose: row, at, reference, host }));
}

/** Finds the purpose of each reference, also in invalid rows. If two rows name it, payments wins. */
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

export function findReferences(value: unknown): string[] {
  if (typeof value === 'string') return /^\s*(ssm|secretsmanager|env):/.test(value) ? [value.trim()] : [];
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return [];
  return (value instanceof Set ? [...value] : Object.values(value)).flatMap(findReferences);
}

const findSetting = (name: unknown) =>
  typeof name === 'string' && Object.hasOwn(settingTable, name)
    ? settingTable[name as keyof typeof settingTable]
    : undefined;

export const createSettingReader = (rules: ReferenceRules): TableReader<Partial<Settings>> => ({
  table: 'settings',
  read: (raw) => readSetting(raw, rules),
  findReplacement({ raw }) {
    const name = attributeOf(raw, 'name');
    const safe = findSetting(name)?.safe;
    return safe && { raw: { name, value: safe.value }, notice: `until it is fixed, ${safe.said}` };
  },
});
