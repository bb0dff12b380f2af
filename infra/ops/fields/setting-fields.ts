/** The fields of a setting and of a plan. Empty fields take the default. */
import type { RawRow } from '../../../shared/operate/operator-ports.ts';
import { isRecord, parseJson } from '../../../shared/wire/json.ts';
import {
  choiceField,
  flagField,
  jsonField,
  listFields,
  namesField,
  third,
  parseTypedList,
  parseTypedNumber,
  type RowField,
} from './row-field.ts';

interface SettingForm {
  about: string;
  fields: (value: unknown) => readonly RowField[];
}

const parts = (about: string, ...fields: RowField[]): SettingForm => ({ about, fields: () => fields });

const flag = (about: string, isDefault: boolean): SettingForm =>
  parts(about, flagField('value', about, `${isDefault ? 'yes' : 'no'} (default)`));

const text = (about: string, more: Partial<RowField> = {}): SettingForm =>
  parts(about, { name: 'value', label: about, help: 'Leave empty for the default.', ...more });

const names = (about: string, help: string): SettingForm =>
  text(about, {
    ...namesField('value', about, `${help} Separated by commas or lines. Leave empty for the default.`),
    typed: parseNames,
  });

const parseNames = (typed: string): string[] | undefined => {
  const list = parseTypedList(typed);
  return list.length === 0 ? undefined : list;
};

const switchIn = (value: unknown): boolean =>
  value === true || (isRecord(value) && value['all_keys'] !== false);

const figure = (name: string, label: string, byDefault: string): RowField =>
  third(`value.${name}`, label, `Default: ${byDefault}.`, { input: 'numeric' });

const secretField = (name: string, path: string): RowField => ({
  name,
  label: 'Secret',
  help: `A reference, never the secret itself: \`ssm:/relay/.../${path}\`.`,
});

const timeField = (name: string, label: string, none: string): RowField => ({
  name,
  label,
  width: 'third',
  placeholder: 'tomorrow 14:00',
  help: `UTC. Leave empty for ${none}.`,
});

const noticeFields = (index: number): RowField[] => {
  const at = `value.${index}`;
  return [
    {
      name: `${at}.text`,
      label: `Notice ${index + 1}`,
      kind: 'area',
      help: 'Shown to all customers, on their pages and in the API. Leave empty to remove the notice.',
    },
    timeField(`${at}.from`, 'From', 'now'),
    timeField(`${at}.until`, 'Until', 'no end'),
    {
      ...namesField(`${at}.models`, 'Affected models', 'Leave empty for none.'),
      width: 'third',
      typed: parseNames,
    },
  ];
};

/** In the order of the page. A setting without a line has a field for its value as JSON. */
export const settingForms: Readonly<Partial<Record<string, SettingForm>>> = {
  notices: { about: 'Notices to customers', fields: (value) => listFields(value, noticeFields) },
  relay_closed: flag('Close the relay: reject every call', false),
  'subscription.enabled': flag('Plans pay for calls', false),
  unpriced_models: parts(
    'Models without a price',
    choiceField(
      'value',
      'Models without a price',
      { free: 'free: calls cost nothing', refuse: 'refuse: calls are rejected' },
      'free (default)',
    ),
  ),
  limits: parts(
    'Limits of calls and customers',
    figure('account_concurrency', 'Concurrent calls per customer', 'no limit'),
    figure('account_rpm', 'Calls per minute per customer', 'no limit'),
    figure('account_tpm', 'Tokens per minute per customer', 'no limit'),
    figure('default_output_tokens', 'Output tokens if a call sets no limit', '16384'),
    figure('request_seconds', 'Request timeout (s)', '600'),
    figure('state_days', 'Days to keep turn state', '30'),
    flagField('value.count_free', 'Count free calls', 'yes (default)'),
  ),
  contact: text('Contact shown on pages and in errors'),
  seller: parts(
    'Seller named on statements',
    { name: 'value.name', label: 'Name' },
    { name: 'value.address', label: 'Address', kind: 'area', help: 'One line each, as on a letter.' },
  ),
  page: flag('Models page', true),
  account_page: flag('Account page', true),
  time_zone: text('Time zone of budgets', {
    placeholder: 'Asia/Shanghai',
    help: 'Default: UTC.',
  }),
  store: parts(
    'Stored responses',
    {
      ...flagField('value.all_keys', 'Keys may store unless they say otherwise', 'no (default)'),
      // The value may be a switch alone.
      shown: (_, { value }) => (switchIn(value) ? 'yes' : 'no'),
    },
    figure('days', 'Days to keep them', '30'),
    figure('event_minutes', 'Minutes to keep events of background responses', '10'),
  ),
  aliases: parts(
    'Names that stand for several models, tried in order',
    jsonField('value', 'Aliases', 'JSON: `{"smart": ["gpt-4o", "glm-5"]}`.'),
  ),
  price_groups: parts(
    'Prices that several customers share',
    jsonField('value', 'Price groups', 'JSON by group: `{"resellers": [{"models": ["*"], "factor": 0.8}]}`.'),
  ),
  alerts: parts(
    'Where account alerts go',
    { name: 'value.webhook', label: 'Webhook', help: 'An address that receives the alerts.' },
    secretField('value.secret', 'alerts/<name>'),
    figure('plan_days', 'Days before a plan ends', '7'),
    figure('key_days', 'Days before a key expires', '7'),
  ),
  search: parts(
    'Web search for models named web-...',
    choiceField('value.type', 'Provider', { searxng: 'searxng', tavily: 'tavily' }, 'none'),
    { name: 'value.endpoint', label: 'Endpoint', help: 'The base URL. Not needed for Tavily.' },
    secretField('value.secret', 'search/<host>/<name>'),
    figure('results', 'Results', '5'),
    { name: 'value.language', label: 'Language', placeholder: 'en', help: 'SearXNG only.' },
    third(
      'value.price',
      'Price per search (¥)',
      'Leave empty for free searches, which only calls that pay for their model get.',
    ),
    third('value.cost', 'Cost per search (¥)', 'What the provider bills you. Default: 0.'),
    figure('per_minute', 'Searches per minute per key', '30 without a price, else no limit'),
  ),
  end_users: parts(
    'End user sent to upstreams',
    flagField(
      'value.hash_accounts',
      'Send a hash of the account if the client names no end user',
      'yes (default)',
    ),
  ),
  cors_origins: names('Origins whose pages may call the relay', 'For example https://app.example.com.'),
  content_urls: names('Allowed beginnings of image and file URLs', 'For example https: and data:image/.'),
  top_up_url: text('Where customers top up', {
    help: '{account} stands for the account. Leave empty for none.',
  }),
  model_facts: parts(
    'Facts shown on model pages',
    jsonField(
      'value',
      'Facts',
      'JSON by model: `{"gpt-4o": {"context": 128000, "takes": ["text", "image"]}}`.',
    ),
  ),
  payments: parts(
    'Payments by Stripe',
    jsonField('value', 'Payments', 'JSON {stripe}: see docs/payments.md. Secrets are references.'),
  ),
};

/** The value of a setting's row, or members of it. */
export const settingFields = (name: string, { value }: RawRow): readonly RowField[] =>
  settingForms[name]?.fields(value) ?? [
    {
      name: 'value',
      label: 'Value',
      kind: 'area',
      help: 'JSON or text. Leave empty for the default.',
      shown: (each) => (typeof each === 'string' ? each : (JSON.stringify(each) ?? '')),
      typed: (typed) => (typed === '' ? undefined : (parseJson(typed) ?? typed)),
    },
  ];

const itemFields = (index: number): RowField[] => {
  const at = `items.${index}`;
  return [
    {
      name: `${at}.id`,
      label: `Entry ${index + 1}`,
      width: 'third',
      help: 'Its ID in usage. Leave empty for no entry.',
    },
    { name: `${at}.name`, label: 'Name', width: 'third', help: 'Shown to customers.' },
    third(`${at}.value`, 'Calls per month', '-1 means unlimited.', { input: 'numeric' }),
    { ...namesField(`${at}.models`, 'Models', 'Separated by commas or lines.'), typed: parseNames },
  ];
};

export const planFields = (row: RawRow): RowField[] => [
  {
    name: 'price',
    label: 'Price (¥)',
    input: 'decimal',
    help: 'Shown to customers.',
    typed: parseTypedNumber,
  },
  ...listFields(row['items'], itemFields),
];
