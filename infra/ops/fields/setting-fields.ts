/** What an operator writes of a setting and of a plan: what is empty has its default. */
import type { RawRow } from '../../../shared/operate/operator-ports.ts';
import { isRecord, parseJson } from '../../../shared/wire/json.ts';
import {
  choiceField,
  flagField,
  jsonField,
  listFields,
  namesField,
  third,
  typedList,
  typedNumber,
  type RowField,
} from './row-field.ts';

interface SettingForm {
  about: string;
  fields: (value: unknown) => readonly RowField[];
}

const parts = (about: string, ...fields: RowField[]): SettingForm => ({ about, fields: () => fields });

const flag = (about: string, isDefault: boolean): SettingForm =>
  parts(about, flagField('value', about, `${isDefault ? 'yes' : 'no'}, as it is by default`));

const text = (about: string, more: Partial<RowField> = {}): SettingForm =>
  parts(about, { name: 'value', label: about, help: 'Empty: its default.', ...more });

const names = (about: string, help: string): SettingForm =>
  text(about, {
    ...namesField('value', about, `${help} Apart by commas or lines. Empty: its default.`),
    typed: typedNames,
  });

const typedNames = (typed: string): string[] | undefined => {
  const list = typedList(typed);
  return list.length === 0 ? undefined : list;
};

const switchIn = (value: unknown): boolean =>
  value === true || (isRecord(value) && value['all_keys'] !== false);

const figure = (name: string, label: string, byDefault: string): RowField =>
  third(`value.${name}`, label, `Empty: ${byDefault}.`, { input: 'numeric' });

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
  help: `UTC. Empty: ${none}.`,
});

const noticeFields = (index: number): RowField[] => {
  const at = `value.${index}`;
  return [
    {
      name: `${at}.text`,
      label: `Notice ${index + 1}`,
      kind: 'area',
      help: 'What all customers read, on the pages and in the account. Empty: it is taken back, with its times.',
    },
    timeField(`${at}.from`, 'From', 'at once'),
    timeField(`${at}.until`, 'Until', 'until it is taken back'),
    {
      ...namesField(`${at}.models`, 'About the models', 'Empty: about none.'),
      width: 'third',
      typed: typedNames,
    },
  ];
};

/** In the order of the page. A setting without a line has a field for its value as JSON. */
export const settingForms: Readonly<Partial<Record<string, SettingForm>>> = {
  notices: { about: 'Notices to customers', fields: (value) => listFields(value, noticeFields) },
  relay_closed: flag('The relay is closed: every call is refused', false),
  'subscription.enabled': flag('Plans cover calls', false),
  unpriced_models: parts(
    'Models without a price',
    choiceField(
      'value',
      'Models without a price',
      { free: 'free: calls cost nothing', refuse: 'refuse: calls are refused' },
      'free, as it is by default',
    ),
  ),
  limits: parts(
    'Limits of calls and of accounts',
    figure('account_concurrency', 'Calls at once, an account', 'no limit'),
    figure('account_rpm', 'Calls a minute, an account', 'no limit'),
    figure('account_tpm', 'Tokens a minute, an account', 'no limit'),
    figure('default_output_tokens', 'Output tokens where a call names none', '16384'),
    figure('request_seconds', 'Seconds of a request', '600'),
    figure('state_days', 'Days that the state of turns is kept', '30'),
    flagField('value.count_free', 'Free calls count', 'yes, as it is by default'),
  ),
  contact: text('What refusals and pages say whom to ask'),
  seller: parts(
    'Who sells, as statements name it',
    { name: 'value.name', label: 'Name' },
    { name: 'value.address', label: 'Address', kind: 'area', help: 'In lines, as on a letter.' },
  ),
  page: flag('The page of models', true),
  account_page: flag('The account page', true),
  time_zone: text('The calendar of budgets', {
    placeholder: 'Asia/Shanghai',
    help: 'A time zone. Empty: UTC.',
  }),
  store: parts(
    'Stored responses',
    {
      ...flagField('value.all_keys', 'Keys that do not say otherwise may store', 'no, as it is by default'),
      // The value may be a switch alone.
      shown: (_, { value }) => (switchIn(value) ? 'yes' : 'no'),
    },
    figure('days', 'Days that they are kept', '30'),
    figure('event_minutes', 'Minutes that the events of a background response are kept', '10'),
  ),
  aliases: parts(
    'Names that stand for models, in the order in which they are tried',
    jsonField('value', 'Aliases', 'A map: `{"smart": ["gpt-4o", "glm-5"]}`.'),
  ),
  alerts: parts(
    'Whom alerts of accounts go to',
    { name: 'value.webhook', label: 'Webhook', help: 'An address that alerts are posted to.' },
    secretField('value.secret', 'alerts/<name>'),
    figure('plan_days', 'Days before the end of a plan', '7'),
    figure('key_days', 'Days before the end of a key', '7'),
  ),
  search: parts(
    'Where models named web-... search',
    choiceField('value.type', 'Provider', { searxng: 'searxng', tavily: 'tavily' }, 'none'),
    { name: 'value.endpoint', label: 'Endpoint', help: 'The base address; Tavily has its own.' },
    secretField('value.secret', 'search/<host>/<name>'),
    figure('results', 'Results', '5'),
    { name: 'value.language', label: 'Language', placeholder: 'en', help: 'For SearXNG alone.' },
    third(
      'value.price',
      'Price of a search, yuan',
      'Empty: free, and only for calls that pay for their model.',
    ),
    third('value.cost', 'Cost of a search, yuan', 'What the provider bills you. Empty: 0.'),
    figure('per_minute', 'Searches a minute, a key', '30 without a price, else no limit'),
  ),
  end_users: parts(
    'What upstreams get as end user',
    flagField(
      'value.hash_accounts',
      'A hash of the account where the client names none',
      'yes, as it is by default',
    ),
  ),
  cors_origins: names('Origins whose pages may call the relay', 'Such as https://app.example.com.'),
  content_urls: names('How URLs of images and files may begin', 'Such as https: and data:image/.'),
  top_up_url: text('Where customers top up', { help: '{account} stands for the account. Empty: nowhere.' }),
  model_facts: parts(
    'What the page of a model says beside its prices',
    jsonField(
      'value',
      'Facts',
      'A map by model: `{"gpt-4o": {"context": 128000, "takes": ["text", "image"]}}`.',
    ),
  ),
  payments: parts(
    'Payments by Stripe',
    jsonField('value', 'Payments', 'A map {stripe}: see docs/payments.md. Secrets are references.'),
  ),
};

/** Of the row of a setting: its value, or parts of it. */
export const settingFields = (name: string, { value }: RawRow): readonly RowField[] =>
  settingForms[name]?.fields(value) ?? [
    {
      name: 'value',
      label: 'Value',
      kind: 'area',
      help: 'JSON, or else text. Empty: its default.',
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
      help: 'Its id, in usage. Empty: no entry.',
    },
    { name: `${at}.name`, label: 'Name', width: 'third', help: 'For customers.' },
    third(`${at}.value`, 'Calls a month', '-1 is unlimited.', { input: 'numeric' }),
    { ...namesField(`${at}.models`, 'Models', 'Apart by commas or lines.'), typed: typedNames },
  ];
};

export const planFields = (row: RawRow): RowField[] => [
  { name: 'price', label: 'Price, yuan', input: 'decimal', help: 'Shown to customers.', typed: typedNumber },
  ...listFields(row['items'], itemFields),
];
