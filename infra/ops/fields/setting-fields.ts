/** The fields of a setting and of a plan. Empty fields take the default. */
import { asRecord, isRecord, listIn, parseJson } from '../../../shared/wire/json.ts';
import { makeEntries } from './form-fields.ts';
import { customerPriceEntries, mappingFields } from './price-fields.ts';
import {
  makeChoice,
  makeCount,
  makeFlag,
  makeLines,
  makeNames,
  makeNumber,
  makeShort,
  parseNames,
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
  makeForm(
    about,
    makeNames('value', about, `${help} Separated by commas or lines. Leave empty for the default.`),
  );

const isSwitchedOn = (value: unknown): boolean =>
  value === true || (isRecord(value) && value['all_keys'] !== false);

const makeFigure = (name: string, label: string, byDefault: string): RowField =>
  makeCount(`value.${name}`, label, `Default: ${byDefault}.`);

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
  makeShort('currency', 'Currency', 'A currency that has a rate below.', { placeholder: 'usd' }),
  makeFlag('auto_top_up', 'Automatic top-ups', 'no', { width: 'third' }),
  makeShort('plans', 'Plans for sale', 'Levels, such as 1, 2.', {
    format: (value) => listIn(value).join(', '),
    parse: (text) => parseNames(text)?.map(parseTypedNumber),
  }),
  { name: 'endpoint', label: 'Endpoint', help: 'Leave empty for Stripe.' },
];

const makeTime = (name: string, label: string, none: string): RowField =>
  makeShort(name, label, `UTC. Leave empty for ${none}.`, { placeholder: 'tomorrow 14:00' });

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
      makeNames('models', 'Affected models', 'Leave empty for none.', { width: 'third' }),
    ],
  }),
  relay_closed: makeFlagForm('Close the relay: refuse every call', false),
  'subscription.enabled': makeFlagForm('Plans pay for calls', false),
  unpriced_models: makeForm(
    'Models without a price',
    makeChoice(
      'value',
      'Models without a price',
      { free: 'free: calls cost nothing', refuse: 'refuse: calls are refused' },
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
      ...makeFlag('value.all_keys', 'Keys may store responses by default', 'no (default)'),
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
      makeNames('models', 'Models', 'One per line, in the order in which they are tried.', {
        width: 'third',
      }),
      makeFlag('on_context_length', 'Try the next model if a prompt is too long', 'no', { width: 'third' }),
    ],
    unpack: (value) => (Array.isArray(value) ? { models: value } : asRecord(value)),
    pack: (alias) => ('on_context_length' in alias ? alias : alias['models']),
  }),
  price_groups: makeEntriesForm('Prices that several customers share', {
    ...customerPriceEntries,
    key: 'group',
    isGrouped: true,
    fields: [
      { name: 'group', label: 'Group', help: 'Any name. Enter it as Price group of each customer.' },
      ...customerPriceEntries.fields,
    ],
  }),
  price_lists: makeEntriesForm('Columns of vendors’ price lists', {
    key: 'vendor',
    noun: 'Vendor',
    fields: mappingFields,
  }),
  alerts: makeForm(
    'Receivers of account alerts',
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
      'Leave empty for free searches, which are only for calls that pay for their model.',
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
    'Allowed prefixes of image and file URLs',
    'For example https: and data:image/.',
  ),
  top_up_url: makeTextForm('Address where customers top up', {
    help: '{account} is replaced by the customer name. Leave empty for none.',
  }),
  top_up_bonus: makeEntriesForm('Bonus for larger top-ups', {
    noun: 'Step',
    about: 'List the lowest payment first. A larger payment must not get a smaller bonus.',
    fields: [makeNumber('pay', 'Pays (¥)', 'At least.'), makeNumber('get', 'Gets (¥)', 'For that payment.')],
  }),
  model_facts: makeEntriesForm('Facts shown on model pages', {
    key: 'model',
    noun: 'Model',
    fields: [
      { name: 'model', label: 'Model', width: 'third' },
      { name: 'vendor', label: 'Vendor', width: 'third' },
      makeCount('context', 'Context length', 'Tokens.'),
      makeCount('output', 'Max output', 'Tokens.'),
      makeNames('takes', 'Input types', kindsHelp, { width: 'third', kind: 'text' }),
      makeNames('makes', 'Output types', kindsHelp, { width: 'third', kind: 'text' }),
      { name: 'about', label: 'Description' },
    ],
  }),
  payments: makeForm(
    'Payments by Stripe',
    makeFlag('value.stripe.live', 'Live mode', 'not set', { help: 'no: Stripe’s test mode.' }),
    makeSecrets('value.stripe.webhook_secret', 'Webhook secret', 'payments/<name>'),
    makeSecrets('value.stripe.link_secret', 'Link secret', 'payments/<name>'),
    makeLines('value.stripe.rates', 'Rates', 'Yuan per unit of a currency, one per line: `usd = 7.1`.'),
    makeChoice(
      'value.stripe.unsigned',
      'Payments of unknown customers',
      { park: 'park: hold until you assign them', ignore: 'ignore' },
      'park (default)',
    ),
    ...checkoutFields.map((field) =>
      Object.assign({}, field, { name: `value.stripe.checkout.${field.name}`, group: 'Checkout' }),
    ),
  ),
};

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
  makeNumber('price', 'Price (¥)', 'Shown to customers.'),
  makeEntries('items', 'Covered calls', 'JSON', {
    noun: 'Entry',
    isOpen: true,
    fields: [
      makeShort('id', 'ID', 'Its ID in usage.'),
      makeShort('name', 'Name', 'Shown to customers.'),
      makeCount('value', 'Calls per month', '-1 means unlimited.'),
      makeNames('models', 'Models'),
    ],
  }),
];
