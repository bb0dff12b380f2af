/** The fields of a setting and of a plan. Empty fields take the default. */
import type { RawRow } from '../../../shared/operate/operator-ports.ts';
import { isRecord, parseJson } from '../../../shared/wire/json.ts';
import {
  makeChoice,
  makeFlag,
  makeJson,
  listFields,
  makeNames,
  makeNumber,
  parseTypedList,
  parseTypedNumber,
  type RowField,
} from './row-field.ts';

interface SettingForm {
  about: string;
  fields: (value: unknown) => readonly RowField[];
}

const makeForm = (about: string, ...fields: RowField[]): SettingForm => ({ about, fields: () => fields });

const makeFlagForm = (about: string, isDefault: boolean): SettingForm =>
  makeForm(about, makeFlag('value', about, `${isDefault ? 'yes' : 'no'} (default)`));

const makeTextForm = (about: string, more: Partial<RowField> = {}): SettingForm =>
  makeForm(about, { name: 'value', label: about, help: 'Leave empty for the default.', ...more });

const makeNamesForm = (about: string, help: string): SettingForm =>
  makeTextForm(about, {
    ...makeNames('value', about, `${help} Separated by commas or lines. Leave empty for the default.`),
    parse: parseNames,
  });

const parseNames = (typed: string): string[] | undefined => {
  const list = parseTypedList(typed);
  return list.length === 0 ? undefined : list;
};

const isSwitchedOn = (value: unknown): boolean =>
  value === true || (isRecord(value) && value['all_keys'] !== false);

const makeFigure = (name: string, label: string, byDefault: string): RowField =>
  makeNumber(`value.${name}`, label, `Default: ${byDefault}.`, { input: 'numeric' });

const makeSecret = (name: string, path: string): RowField => ({
  name,
  label: 'Secret',
  help: `A reference, never the secret itself: \`ssm:/relay/.../${path}\`.`,
});

const makeTime = (name: string, label: string, none: string): RowField => ({
  name,
  label,
  width: 'third',
  placeholder: 'tomorrow 14:00',
  help: `UTC. Leave empty for ${none}.`,
});

const listNoticeFields = (index: number): RowField[] => {
  const at = `value.${index}`;
  return [
    {
      name: `${at}.text`,
      label: `Notice ${index + 1}`,
      kind: 'area',
      help: 'Shown to all customers, on their pages and in the API. Leave empty to remove the notice.',
    },
    makeTime(`${at}.from`, 'From', 'now'),
    makeTime(`${at}.until`, 'Until', 'no end'),
    {
      ...makeNames(`${at}.models`, 'Affected models', 'Leave empty for none.'),
      width: 'third',
      parse: parseNames,
    },
  ];
};

/** In the order of the page. A setting without a line has a field for its value as JSON. */
export const settingForms: Readonly<Partial<Record<string, SettingForm>>> = {
  notices: { about: 'Notices to customers', fields: (value) => listFields(value, listNoticeFields) },
  relay_closed: makeFlagForm('Close the relay: reject every call', false),
  'subscription.enabled': makeFlagForm('Plans pay for calls', false),
  unpriced_models: makeForm(
    'Models without a price',
    makeChoice(
      'value',
      'Models without a price',
      { free: 'free: calls cost nothing', refuse: 'refuse: calls are rejected' },
      'free (default)',
    ),
  ),
  limits: makeForm(
    'Limits of calls and customers',
    makeFigure('account_concurrency', 'Concurrent calls per customer', 'no limit'),
    makeFigure('account_rpm', 'Calls per minute per customer', 'no limit'),
    makeFigure('account_tpm', 'Tokens per minute per customer', 'no limit'),
    makeFigure('default_output_tokens', 'Output tokens if a call sets no limit', '16384'),
    makeFigure('request_seconds', 'Request timeout (s)', '600'),
    makeFigure('state_days', 'Days to keep turn state', '30'),
    makeFlag('value.count_free', 'Count free calls', 'yes (default)'),
  ),
  contact: makeTextForm('Contact shown on pages and in errors'),
  seller: makeForm(
    'Seller named on statements',
    { name: 'value.name', label: 'Name' },
    { name: 'value.address', label: 'Address', kind: 'area', help: 'One line each, as on a letter.' },
  ),
  page: makeFlagForm('Models page', true),
  account_page: makeFlagForm('Account page', true),
  time_zone: makeTextForm('Time zone of budgets', {
    placeholder: 'Asia/Shanghai',
    help: 'Default: UTC.',
  }),
  store: makeForm(
    'Stored responses',
    {
      ...makeFlag('value.all_keys', 'Keys may store unless they say otherwise', 'no (default)'),
      // The value may be a switch alone.
      format: (_, { value }) => (isSwitchedOn(value) ? 'yes' : 'no'),
    },
    makeFigure('days', 'Days to keep them', '30'),
    makeFigure('event_minutes', 'Minutes to keep events of background responses', '10'),
  ),
  aliases: makeForm(
    'Names that stand for several models, tried in order',
    makeJson('value', 'Aliases', 'JSON: `{"smart": ["gpt-4o", "glm-5"]}`.'),
  ),
  price_groups: makeForm(
    'Prices that several customers share',
    makeJson('value', 'Price groups', 'JSON by group: `{"resellers": [{"models": ["*"], "factor": 0.8}]}`.'),
  ),
  alerts: makeForm(
    'Where account alerts go',
    { name: 'value.webhook', label: 'Webhook', help: 'An address that receives the alerts.' },
    makeSecret('value.secret', 'alerts/<name>'),
    makeFigure('plan_days', 'Days before a plan ends', '7'),
    makeFigure('key_days', 'Days before a key expires', '7'),
  ),
  search: makeForm(
    'Web search for models named web-...',
    makeChoice('value.type', 'Provider', { searxng: 'searxng', tavily: 'tavily' }, 'none'),
    { name: 'value.endpoint', label: 'Endpoint', help: 'The base URL. Not needed for Tavily.' },
    makeSecret('value.secret', 'search/<host>/<name>'),
    makeFigure('results', 'Results', '5'),
    { name: 'value.language', label: 'Language', placeholder: 'en', help: 'SearXNG only.' },
    makeNumber(
      'value.price',
      'Price per search (¥)',
      'Leave empty for free searches, which only calls that pay for their model get.',
    ),
    makeNumber('value.cost', 'Cost per search (¥)', 'What the provider bills you. Default: 0.'),
    makeFigure('per_minute', 'Searches per minute per key', '30 without a price, else no limit'),
  ),
  end_users: makeForm(
    'End user sent to upstreams',
    makeFlag(
      'value.hash_accounts',
      'Send a hash of the account if the client names no end user',
      'yes (default)',
    ),
  ),
  cors_origins: makeNamesForm(
    'Origins whose pages may call the relay',
    'For example https://app.example.com.',
  ),
  content_urls: makeNamesForm(
    'Allowed beginnings of image and file URLs',
    'For example https: and data:image/.',
  ),
  top_up_url: makeTextForm('Where customers top up', {
    help: '{account} stands for the account. Leave empty for none.',
  }),
  top_up_bonus: makeForm(
    'Bonus for larger top-ups',
    makeJson('value', 'Steps', 'JSON, lowest first: `[{"pay": 100, "get": 110}]`.'),
  ),
  model_facts: makeForm(
    'Facts shown on model pages',
    makeJson(
      'value',
      'Facts',
      'JSON by model: `{"gpt-4o": {"context": 128000, "takes": ["text", "image"]}}`.',
    ),
  ),
  payments: makeForm(
    'Payments by Stripe',
    makeJson('value', 'Payments', 'JSON {stripe}: see docs/payments.md. Secrets are references.'),
  ),
};

/** The value of a setting's row, or members of it. */
export const listSettingFields = (name: string, { value }: RawRow): readonly RowField[] =>
  settingForms[name]?.fields(value) ?? [
    {
      name: 'value',
      label: 'Value',
      kind: 'area',
      help: 'JSON or text. Leave empty for the default.',
      format: (each) => (typeof each === 'string' ? each : (JSON.stringify(each) ?? '')),
      parse: (typed) => (typed === '' ? undefined : (parseJson(typed) ?? typed)),
    },
  ];

const listItemFields = (index: number): RowField[] => {
  const at = `items.${index}`;
  return [
    {
      name: `${at}.id`,
      label: `Entry ${index + 1}`,
      width: 'third',
      help: 'Its ID in usage. Leave empty for no entry.',
    },
    { name: `${at}.name`, label: 'Name', width: 'third', help: 'Shown to customers.' },
    makeNumber(`${at}.value`, 'Calls per month', '-1 means unlimited.', { input: 'numeric' }),
    { ...makeNames(`${at}.models`, 'Models', 'Separated by commas or lines.'), parse: parseNames },
  ];
};

export const listPlanFields = (row: RawRow): RowField[] => [
  {
    name: 'price',
    label: 'Price (¥)',
    input: 'decimal',
    help: 'Shown to customers.',
    parse: parseTypedNumber,
  },
  ...listFields(row['items'], listItemFields),
];
