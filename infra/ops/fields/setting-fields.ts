/** The fields of a setting and of a plan. Empty fields take the default. */
import { asRecord, isRecord, listIn, parseJson } from '../../../shared/wire/json.ts';
import { makeEntries } from './form-fields.ts';
import { customerPriceEntries, mappingFields } from './price-fields.ts';
import {
  makeChoice,
  makeFlag,
  makeLines,
  makeNames,
  makeNumber,
  parseTypedList,
  parseTypedNumber,
  type Entries,
  type RowField,
} from './row-field.ts';

interface SettingForm {
  about: string;
  fields: readonly RowField[];
}

const makeForm = (about: string, ...fields: RowField[]): SettingForm => ({ about, fields });

const makeEntriesForm = (about: string, entries: Entries): SettingForm =>
  makeForm(about, makeEntries('value', about, 'JSON', { isOpen: true, ...entries }));

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

/** One reference, or several while a secret is rotated. */
const makeSecrets = (name: string, label: string, path: string): RowField => ({
  ...makeSecret(name, path),
  label,
  parse(text) {
    const references = parseNames(text);
    return references?.length === 1 ? references[0] : references;
  },
});

const checkoutFields: readonly RowField[] = [
  { ...makeSecret('secret_key', 'payments/<name>'), label: 'Secret key' },
  { name: 'currency', label: 'Currency', width: 'third', placeholder: 'usd', help: 'One of the rates.' },
  { ...makeFlag('auto_top_up', 'Automatic top-ups', 'no'), width: 'third' },
  {
    name: 'plans',
    label: 'Plans for sale',
    width: 'third',
    help: 'Levels, such as 1, 2.',
    format: (value) => listIn(value).join(', '),
    parse: (text) => parseNames(text)?.map(parseTypedNumber),
  },
  { name: 'endpoint', label: 'Endpoint', help: 'Leave empty for Stripe.' },
];

const makeTime = (name: string, label: string, none: string): RowField => ({
  name,
  label,
  width: 'third',
  placeholder: 'tomorrow 14:00',
  help: `UTC. Leave empty for ${none}.`,
});

const makeThirdNames = (name: string, label: string, help: string): RowField => ({
  ...makeNames(name, label, help),
  width: 'third',
  parse: parseNames,
});

const kindsHelp = 'Such as text, image, audio, video, file.';

/** In the order of the page. A setting without a line has a field for its value as JSON. */
export const settingForms: Readonly<Partial<Record<string, SettingForm>>> = {
  notices: makeEntriesForm('Notices to customers', {
    noun: 'Notice',
    about: 'Shown to all customers, on their pages and in the API.',
    fields: [
      { name: 'text', label: 'Text', kind: 'area' },
      makeTime('from', 'From', 'now'),
      makeTime('until', 'Until', 'no end'),
      makeThirdNames('models', 'Affected models', 'Leave empty for none.'),
    ],
  }),
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
  aliases: makeEntriesForm('Names that stand for several models, tried in order', {
    key: 'name',
    noun: 'Alias',
    fields: [
      { name: 'name', label: 'Public name', width: 'third', placeholder: 'smart' },
      makeThirdNames('models', 'Models', 'In the order to try them, one per line.'),
      {
        ...makeFlag('on_context_length', 'Next model if a prompt is too long', 'no'),
        width: 'third',
      },
    ],
    unpack: (value) => (Array.isArray(value) ? { models: value } : asRecord(value)),
    pack: (alias) => ('on_context_length' in alias ? alias : alias['models']),
  }),
  price_groups: makeEntriesForm('Prices that several customers share', {
    ...customerPriceEntries,
    key: 'group',
    isGrouped: true,
    fields: [
      { name: 'group', label: 'Group', help: 'The name in `price_group` of its customers.' },
      ...customerPriceEntries.fields,
    ],
  }),
  price_lists: makeEntriesForm('Columns of vendors’ price lists', {
    key: 'vendor',
    noun: 'Vendor',
    fields: mappingFields,
  }),
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
  top_up_bonus: makeEntriesForm('Bonus for larger top-ups', {
    noun: 'Step',
    about: 'The lowest payment comes first. The bonus must not fall.',
    fields: [makeNumber('pay', 'Pays (¥)', 'At least.'), makeNumber('get', 'Gets (¥)', 'For that payment.')],
  }),
  model_facts: makeEntriesForm('Facts shown on model pages', {
    key: 'model',
    noun: 'Model',
    fields: [
      { name: 'model', label: 'Model', width: 'third' },
      { name: 'vendor', label: 'Vendor', width: 'third' },
      makeNumber('context', 'Context length', 'Tokens.', { input: 'numeric' }),
      makeNumber('output', 'Max output', 'Tokens.', { input: 'numeric' }),
      { ...makeThirdNames('takes', 'Takes', kindsHelp), kind: 'text' },
      { ...makeThirdNames('makes', 'Makes', kindsHelp), kind: 'text' },
      { name: 'about', label: 'Description' },
    ],
  }),
  payments: makeForm(
    'Payments by Stripe',
    makeFlag('value.stripe.live', 'Live mode', 'not set', 'no: Stripe’s test mode.'),
    makeSecrets('value.stripe.webhook_secret', 'Webhook secret', 'payments/<name>'),
    makeSecrets('value.stripe.link_secret', 'Link secret', 'payments/<name>'),
    makeLines('value.stripe.rates', 'Rates', 'Yuan per unit of a currency, one per line: `usd = 7.1`.'),
    makeChoice(
      'value.stripe.unsigned',
      'Payments of unknown customers',
      { park: 'park: wait for you', ignore: 'ignore' },
      'park (default)',
    ),
    ...checkoutFields.map((field) =>
      Object.assign({}, field, { name: `value.stripe.checkout.${field.name}`, group: 'Checkout' }),
    ),
  ),
};

/** The value of a setting's row, or members of it. */
export const listSettingFields = (name: string): readonly RowField[] =>
  settingForms[name]?.fields ?? [
    {
      name: 'value',
      label: 'Value',
      kind: 'area',
      help: 'JSON or text. Leave empty for the default.',
      format: (each) => (typeof each === 'string' ? each : (JSON.stringify(each) ?? '')),
      parse: (typed) => (typed === '' ? undefined : (parseJson(typed) ?? typed)),
    },
  ];

export const planFields: readonly RowField[] = [
  {
    name: 'price',
    label: 'Price (¥)',
    input: 'decimal',
    help: 'Shown to customers.',
    parse: parseTypedNumber,
  },
  makeEntries('items', 'Covered calls', 'JSON', {
    noun: 'Entry',
    isOpen: true,
    fields: [
      { name: 'id', label: 'ID', width: 'third', help: 'Its ID in usage.' },
      { name: 'name', label: 'Name', width: 'third', help: 'Shown to customers.' },
      makeNumber('value', 'Calls per month', '-1 means unlimited.', { input: 'numeric' }),
      { ...makeNames('models', 'Models', 'Separated by commas or lines.'), parse: parseNames },
    ],
  }),
];
