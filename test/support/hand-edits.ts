import type { TableName } from '../../shared/tables/table-names.ts';

type Row = Record<string, unknown>;

/** A mistake that operators make when editing a table by hand, and the resulting text on the row. */
export type HandEdit = [table: TableName, row: Row, says: string | RegExp];

const endpoint = 'https://api.vendor.example/v1';
const priced = { type: 'token-billing', input: 0.001, output: 0.002 };
const future = '2099-01-01T00:00:00Z';

/** The rows before the edit, already published. */
export const rowsBefore: [TableName, Row][] = [
  [
    'channels',
    { id: 'base', endpoint, models: ['served', 'dear', 'gift', 'late', 'mini', 'sold'], state: true },
  ],
  ['charges', { id: 1, ...priced, models: ['served', 'mini', 'sold'] }],
  ['charges', { id: 2, ...priced, models: ['dear'] }],
  ['charges', { id: 3, ...priced, models: ['gift'] }],
  ['charges', { id: 4, ...priced, models: ['late'] }],
  ['accounts', { account: 'customer' }],
];

let made = 0;
const next = (): number => 100 + (made += 1);
const channel = (more: Row, says: HandEdit[2]): HandEdit => [
  'channels',
  { id: `channel-${next()}`, endpoint, models: ['served'], state: true, ...more },
  says,
];
const charge = (more: Row, says: HandEdit[2]): HandEdit => [
  'charges',
  { id: next(), ...priced, models: ['sold'], from: future, ...more },
  says,
];
const key = (more: Row, says: HandEdit[2]): HandEdit => [
  'keys',
  { hash: String(next()).padStart(64, '0'), account: 'customer', ...more },
  says,
];
const account = (more: Row, says: HandEdit[2]): HandEdit => [
  'accounts',
  { account: `account-${next()}`, ...more },
  says,
];
const setting = (name: string, value: unknown, says: HandEdit[2]): HandEdit => [
  'settings',
  { name, value },
  says,
];
const params = (value: Row, says: HandEdit[2]): HandEdit => channel({ params: value }, says);
const plan = (more: Row, says: HandEdit[2]): HandEdit => ['plans', { level: 1, ...more }, says];
const item = { id: 'a', value: 10, models: ['served'] };

const channels: HandEdit[] = [
  channel({ endpoint: `${endpoint}/chat/completions` }, 'endpoint: found /chat/completions'),
  channel({ endpoint: 'api.vendor.example' }, 'endpoint: found no address'),
  channel({ endpoint: 'http://api.vendor.example/v1' }, 'endpoint: found http://'),
  channel({ endpoint: 'https://10.0.0.1/v1' }, 'endpoint: found 10.0.0.1'),
  channel({ endpoint: 'https://llm.internal/v1' }, 'endpoint: found llm.internal'),
  channel({ endpoint: 'https://me:password@api.vendor.example/v1' }, 'endpoint: found a user name'),
  channel({ endpoint: `${endpoint}?key=1` }, 'endpoint: found a ? or #'),
  channel({ endpoint: 'https://api.vendor.example' }, 'endpoint: has no path'),
  channel({ endpoint: undefined }, 'endpoint: '),
  channel({ endpoints: endpoint }, 'endpoints: '),
  channel({ secret: 'sk-the-key-itself' }, 'secret: found a value that is not a reference'),
  channel({ secret: 'ssm:/elsewhere/key' }, 'secret: found an ssm: reference outside'),
  channel({ secret: [] }, 'secret: found an empty list'),
  channel({ secret: 'env:NOT_SET_ANYWHERE' }, 'secret: env:NOT_SET_ANYWHERE cannot be read'),
  channel({ models: 'served' }, 'models: found "served", expected a list'),
  channel({ models: undefined }, 'models: '),
  channel({ models: [] }, 'models: empty'),
  channel({ models: ['a model'] }, /^models\[0\]: found "a model"/),
  channel({ models: ['web-served'] }, /models: web-served is unreachable/),
  channel({ models: ['nobody-priced-this'] }, 'models: no price for nobody-priced-this'),
  channel({ mapper: { other: 'x' } }, 'mapper: maps other'),
  channel({ mapper: ['served'] }, 'mapper: '),
  channel({ state: 'on' }, /^state: found "on".*the channel is disabled/),
  channel({ state: 1 }, 'state: found 1'),
  channel({ priority: 'high' }, 'priority: found "high"'),
  channel({ priority: 1.5 }, 'priority: found 1.5'),
  channel({ weight: -1 }, 'weight: found -1'),
  channel({ type: 'opnai' }, 'type: found "opnai"'),
  channel({ dialect: 'chat-completions' }, 'dialect: found "chat-completions"'),
  channel({ dialect: { other: 'chat' } }, 'dialect: found other'),
  channel({ region: 'us-east-1' }, 'region: '),
  channel({ idle_seconds: 0 }, 'idle_seconds: found 0'),
  channel({ total_seconds: 9000 }, 'total_seconds: found 9000'),
  channel({ connect_seconds: '5s' }, 'connect_seconds: found "5s"'),
  channel({ max_tokens_field: 'max_output_tokens' }, 'max_tokens_field: found "max_output_tokens"'),
  channel({ 'id ': 'x' }, 'id : '),
  channel({ Weight: 2 }, 'Weight: '),
  channel({ cost: { other: { input: 0.001, output: 0.002 } } }, /cost: has other/),
  channel({ cost: { served: { input: 0.001 } } }, 'cost.served.output: '),
  channel(
    { cost: { served: { input: 2.5, output: 10 } } },
    /cost\.served\.input: 2\.5 CNY|cost\.served\.input: 2\.5 yuan/,
  ),
  channel({ cost: { served: { input: 0.001, output: 0.002, rate: 7 } } }, 'cost.served.rate: '),
  params({ drop: 'temperature' }, 'params.drop: found a text'),
  params({ streams: false }, 'params.streams: '),
  params({ efforts: [] }, 'params.efforts: '),
  params({ system: 'top' }, 'params.system: found a text'),
  params({ max_output_tokens: 0 }, 'params.max_output_tokens: found a number'),
  // Types have DynamoDB's names; a tool may write NULL for an empty value.
  params({ L: { S: null, M: { L: true } }, stream: null }, 'params.L: unknown attribute'),
  channel({ models: null, weight: null }, 'models: missing, expected a list'),
];

const charges: HandEdit[] = [
  charge({ type: 'per-token' }, 'type: found "per-token"'),
  charge({ models: 'sold' }, 'models: found "sold"'),
  charge({ models: [] }, 'models: empty'),
  charge({ models: ['nobody-serves-this'] }, 'models: no enabled channel serves nobody-serves-this'),
  charge({ input: '0,001' }, 'input: found "0,001"'),
  charge({ input: -1 }, 'input: found -1'),
  charge({ output: '2¥' }, 'output: found "2¥"'),
  charge(
    { models: ['mini'], input: 0.15, output: 0.6 },
    /^input: 0\.15 yuan per 1,000 tokens looks like a price per million/,
  ),
  charge({ input: 0, output: 0 }, 'input, output: nothing is charged'),
  charge({ type: 'non-billing' }, 'input, output: ignored'),
  charge({ type: 'times-billing' }, 'input: ignored'),
  charge({ type: 'times-billing', input: 0, cached_input: 0.1 }, 'cached_input: ignored'),
  charge({ cached: 0.1 }, 'cached: '),
  charge({ tiers: [{ above: 100, input: 1 }] }, /^tiers\[0\]\.output: /),
  charge(
    { tiers: [200, 100].map((above) => ({ above, input: 0.001, output: 0.002 })) },
    /^tiers: .*in ascending order of above/,
  ),
  charge(
    { cached_input: 0.0001, tiers: [{ above: 9, input: 0.001, output: 0.002 }] },
    /^tiers\[0\]\.cached_input: missing/,
  ),
  charge(
    { max_output_tokens: 10, default_output_tokens: 20 },
    'default_output_tokens: 20 exceeds max_output_tokens',
  ),
  charge({ input_factor: 9 }, 'input_factor: found 9'),
  charge({ from: 'next Monday' }, 'from: found "next Monday"'),
  charge({ from: '2026-12-01 00:00' }, 'from: found "2026-12-01 00:00"'),
  charge({ from: 1_795_000_000 }, 'from: found 1795000000'),
  charge(
    { models: ['served'], from: undefined },
    /models: rule 1 has a lower id and takes precedence for served/,
  ),
  ['charges', { id: 2, ...priced, input: 0.002, models: ['dear'] }, /the price of dear rises by 100 %/],
  [
    'charges',
    { id: 3, type: 'non-billing', models: ['gift'] },
    /the price of gift drops to zero: calls are free/,
  ],
  charge(
    { models: ['late'], output: 0.0021, from: '2025-12-01' },
    /^from: at \S+ this time \(2025-12-01T00:00:00Z\) was already past/,
  ),
  charge({ models: ['late'], output: 0.2 }, /at 2099-01-01T00:00:00Z the price of late rises by/),
];

const keys: HandEdit[] = [
  [
    'keys',
    { hash: 'sk-the-key-itself', account: 'customer' },
    /^hash: .*this is the key itself, exposed to everyone .*the key is rejected/,
  ],
  key({ account: undefined }, 'account: '),
  key({ account: 'customer#1' }, 'account: found "customer#1"'),
  key({ account: 'nobody' }, 'account: had no row at the last check'),
  key({ models: 'served' }, 'models: found "served"'),
  key({ models: [] }, 'models: empty'),
  key({ models: ['gpt-99'] }, 'models: no enabled channel served gpt-99'),
  key({ enabled: 'yes' }, 'enabled: found "yes"'),
  key({ expires_at: 1_795_000_000 }, 'expires_at: found 1795000000'),
  key({ expires_at: '31.12.2026' }, 'expires_at: found "31.12.2026"'),
  key({ rpm: 0 }, 'rpm: found 0'),
  key({ max_concurrency: 'two' }, 'max_concurrency: found "two"'),
  key({ budget: 5 }, 'budget: found 5'),
  key({ budget: { amount: 5, period: 'week' } }, 'budget.period: found "week"'),
  key({ ofical: true }, 'ofical: '),
];

const accounts: HandEdit[] = [
  account({ balance: 100 }, /^balance: .*the account has no plan and no limits/),
  account({ plan: 1 }, 'plan: found 1'),
  account({ plan: { level: 4, since: '2026-11-01' } }, 'plan.level: found 4'),
  account({ plan: { level: 1 } }, 'plan.since: '),
  account({ enabled: 'no' }, /^enabled: .*the keys of the account are rejected/),
  account({ rpm: -1 }, 'rpm: found -1'),
  account({ budgets: [{ by: 'user', amount: 1, period: 'day' }] }, 'budgets[0].by: found "user"'),
  account({ alert_below: 'low' }, /^alert_below: .*no alerts are sent for the account/),
  account({ contact: 'ops@example.com' }, 'contact: found "ops@example.com"'),
  account({ contact: { email: 'ops at example.com' } }, 'contact.email: '),
];

const plans: HandEdit[] = [
  plan({ items: [{ ...item, models: ['gpt-99'] }] }, 'items[0].models: no enabled channel serves gpt-99'),
  ['plans', { level: 7 }, 'level: found 7'],
  ['plans', { level: 2, items: [item, item] }, /^items: .*different ids/],
  ['plans', { level: 3, items: [{ ...item, value: '1k' }] }, 'items[0].value: found "1k"'],
];

const settings: HandEdit[] = [
  setting('relay-closed', true, 'name: '),
  setting('unpriced_models', 'deny', 'value: found "deny"'),
  setting('relay_closed', 'maybe', 'value: found "maybe"'),
  setting('limits', { request_seconds: 'ten' }, 'value.request_seconds: found "ten"'),
  setting('time_zone', 'Peking', 'value: found "Peking"'),
  setting('aliases', { fast: ['gone-1', 'gone-2'] }, 'value.fast: not offered'),
  setting('aliases', { served: ['mini'] }, 'value.served: ignored'),
  setting('aliases', { fast: ['mini', 'gone-1'] }, 'value.fast: skips gone-1'),
  setting('aliases', { fast: ['mini', 'mini'] }, 'value.fast: found mini twice'),
  setting('search', { type: 'google' }, 'value.type: found "google"'),
  setting('alerts', { webhook: 'https://hooks.example.com/x' }, 'value.secret: missing'),
  setting('content_urls', ['images'], 'value[0]: found "images"'),
  setting('notices', { text: 'Maintenance' }, 'value: found '),
  setting('notices', [{ text: 'x', until: 'tomorrow' }], 'value[0].until: found "tomorrow"'),
  setting('notices', [{ text: 'x', from: '2026-13-01' }], 'value[0].from: found "2026-13-01"'),
  setting(
    'notices',
    [{ text: 'x', from: '2026-12-02', until: '2026-12-01' }],
    'value[0].until: must be later than from',
  ),
  setting('notices', [{ text: 'x'.repeat(501) }], 'value[0].text: '),
];

const all = [...channels, ...charges, ...keys, ...accounts, ...plans, ...settings];
/** Without the attributes that a case removes. */
export const handEdits = all.map(([table, row, says]): HandEdit => [
  table,
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined)),
  says,
]);
