import { findBin } from '../../shared/billing/time-sketch.ts';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { buildEmptyQuota } from '../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { formatChannelId, buildMonthKey } from '../../shared/billing/daily-keys.ts';
import { attributesOf, type Attributes } from '../../shared/adapters/dynamodb/table-client.ts';
import { physicalNameOf, type TableName } from '../../shared/tables/table-names.ts';
import { timeText } from '../../shared/wire/ids.ts';
import { bulkWrite } from '../support/bulk-write.ts';
import type { TableItems } from '../support/emulator.ts';

type Row = Record<string, unknown>;

export interface RelaySize {
  nowMs: number;
  accounts: number;
  models: number;
  channels: number;
  /** Ledger rows of the first account. A page never reads rows of two accounts. */
  rows: number;
  /** Minutes with calls, by default those of a day. */
  minutes?: number;
}

const dayMs = 86_400_000;
export const hashOf = (index: number): string => index.toString(16).padStart(8, '0').repeat(8);
export const accountAt = (index: number): string => `customer-${String(index).padStart(5, '0')}`;
export const modelAt = (index: number): string => `vendor-${index % 12}/model-${index}`;
const dayAt = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Deterministic, between 0 and 1. */
const noise = (seed: number): number => {
  const value = Math.sin(seed * 12.9898) * 43_758.5453;
  return value - Math.floor(value);
};

/** Pages of such a relay, and those with a form. */
export const readPages = [
  '',
  '?hours=24',
  'customers',
  'customers?name=customer-049',
  'customers?after=%2B4950',
  'customers?order=spent',
  'customers?order=dry',
  `customers/${accountAt(0)}`,
  `customers/${accountAt(1)}`,
  'customers/customer-01999',
  'keys',
  `keys?text=${accountAt(0)}`,
  'channels',
  'channels/upstream-0',
  'charges',
  'requests',
  `requests?account=${accountAt(0)}`,
  `ledger?account=${accountAt(0)}`,
  'versions',
  'versions/diff',
  'audit',
  `statements?account=${accountAt(0)}`,
  'statements',
  'statements?after=%2B34',
  'margins',
  'margins?by=channel',
  'margins?by=customer',
  'find?q=customer-000',
];
export const formPages = [
  `customers/${accountAt(0)}/edit`,
  'channels/upstream-0/edit',
  'channels-new',
  'channels/upstream-0/invoice',
  'charges/17',
  'charges-new',
  // Opened over their lists.
  `customers/${accountAt(0)}/edit?list=customers`,
  `keys/${hashOf(1)}/edit?list=keys`,
  'channels/upstream-0/edit?list=channels',
  'charges/17?list=charges',
];

/** Rows that do not depend on the size of the relay. */
export const smallPages = [
  'customers-new',
  `customers/${accountAt(0)}/grant`,
  `customers/${accountAt(0)}/keys/new`,
  `customers/${accountAt(0)}/close`,
  'keys/check',
  'settings',
  'settings/notices',
  'charges-import',
  'settings/plans/1',
];

/** The rows that pages could read in a relay of this size. */
export function buildRelay(size: RelaySize): TableItems {
  const { accounts, models, nowMs } = size;
  const rows: Partial<Record<TableName, Row[]>> = {
    channels: channelRows(size),
    charges: range(models).map((at) => ({
      id: at + 1,
      type: 'token-billing',
      models: [modelAt(at)],
      input: 0.003 + (at % 7) / 1000,
      output: 0.012 + (at % 9) / 1000,
      cached_input: 0.001,
    })),
    settings: [
      { name: 'unpriced_models', value: 'refuse' },
      { name: 'subscription.enabled', value: true },
    ],
    plans: [1, 2].map((level) => ({ level, price: level * 99, items: [planItem(level, models)] })),
    accounts: range(accounts).map(accountRow),
    keys: range(accounts).map(keyRow),
    daily: [
      ...monthRows(size),
      ...servedRows(size),
      ...minuteRows(size),
      ...dayRows(size),
      ...boughtRows(size),
    ],
    grants: range(40).map((at) => ({
      account: accountAt(0),
      grant_id: `invoice-${4000 + at}`,
      amount: 100 + at,
      reason: 'paid by card',
      _applied: at === 39 ? undefined : '2026-11-01T08:00:00Z',
    })),
    ledger: range(size.rows).map((at) => ledgerRow(at, size)),
  };
  const items = Object.entries(rows).map(([table, all]) => [table, all.map(attributesOf)]);
  return { ...Object.fromEntries(items), quotas: range(accounts).map((at) => quotaItem(at, nowMs)) };
}

const range = (count: number): number[] => Array.from({ length: count }, (_, at) => at);
const operator = 'arn:aws:sts::111122223333:assumed-role/relay-operator/li';

/** Each channel has every n-th model, and each model two channels. */
const serves = (channel: number, model: number, { channels }: RelaySize): boolean =>
  model % Math.ceil(channels / 2) === channel % Math.ceil(channels / 2);

const channelRows = (size: RelaySize): Row[] =>
  range(size.channels).map((at) => ({
    _by: operator,
    id: `upstream-${at}`,
    name: `Vendor ${at}, team account`,
    endpoint: `https://api.vendor-${at}.example.com/v1`,
    secret: `ssm:/relay/relay/vendor-${at}`,
    models: range(size.models)
      .filter((model) => serves(at, model, size))
      .map(modelAt),
    priority: 10 - at,
    weight: 1 + (at % 3),
    state: at !== size.channels - 1,
    cost: { '*': { input: 0.002, output: 0.008 } },
    _at: '2026-11-20T09:12:44Z',
  }));

const planItem = (level: number, models: number): Row => ({
  id: `chat-${level}`,
  name: 'Chat',
  models: range(Math.min(models, 20)).map(modelAt),
  value: level * 1000,
});

const accountRow = (at: number): Row => ({
  _by: operator,
  account: accountAt(at),
  ...(at % 40 === 0 && { plan: { level: 1, since: '2026-01-01' } }),
  ...(at % 97 === 0 && { note: 'pays by invoice, talk to Wei before switching off' }),
  ...(at % 500 === 7 && { enabled: false }),
  _at: '2026-11-02T10:00:00Z',
});

const keyRow = (at: number): Row => ({
  _by: operator,
  hash: hashOf(at + 1),
  account: accountAt(at),
  hint: `sk-${hashOf(at + 1).slice(4, 8)}...${hashOf(at + 1).slice(-4)}`,
  enabled: at % 11 !== 3,
  ...(at % 9 === 0 && { models: [modelAt(at % 50)], rpm: 60 }),
  _created: '2026-06-01T08:00:00Z',
});

function quotaItem(at: number, nowMs: number): Attributes {
  const granted = 50 + Math.floor(noise(at) * 450);
  const spent = (granted * Math.floor(noise(at + 0.5) * 1000)) / 1000;
  const lastMs = nowMs - at * 60_000;
  const nano = (yuan: number) => ({ N: String(BigInt(Math.round(yuan * 1e9))) });
  return {
    ...buildEmptyQuota({ account: accountAt(at) }),
    available: nano(granted - spent),
    spent: nano(spent),
    granted: nano(granted),
    settled: { N: String(at === 0 ? 180_000 : Math.floor(noise(at + 0.2) * 400)) },
    last: {
      L: [
        { S: `${timeText(lastMs)}0000000000000000` },
        { S: 'settled' },
        { N: '1000' },
        { N: String(Math.floor(lastMs / 1000)) },
      ],
    },
  };
}

const monthFigures = (calls: number, seed: number): Row => ({
  calls,
  failures: Math.floor(calls * 0.02 * noise(seed)),
  prompt_tokens: calls * 2300,
  completion_tokens: calls * 410,
  charged: Number((calls * 0.0142).toFixed(6)),
  grants: 1,
  granted: 50,
});

const figures = (calls: number, seed: number): Row => ({
  ...monthFigures(calls, seed),
  cached_tokens: calls * 700,
  bought: Number((calls * 0.0089).toFixed(6)),
  bought_calls: calls,
  bought_charged: Number((calls * 0.0142).toFixed(6)),
  attempts: calls,
  [findBin(500)]: Math.floor(calls * 0.5),
  [findBin(1000)]: Math.floor(calls * 0.3),
  [findBin(2000)]: Math.floor(calls * 0.15),
  [findBin(4000)]: Math.floor(calls * 0.05),
});

const monthRows = ({ accounts, nowMs }: RelaySize): Row[] =>
  range(accounts).map((at) =>
    Object.assign(monthFigures(Math.floor(noise(at) * 4000), at), {
      ...buildMonthKey(dayAt(nowMs).slice(0, 7), accountAt(at)),
    }),
  );

/** Eight days: comparisons of edits look back seven days, lists of channels as far as possible. */
const servedRows = (size: RelaySize): Row[] =>
  range(8).flatMap((back) =>
    range(size.models).flatMap((model) =>
      range(size.channels)
        .filter((channel) => serves(channel, model, size))
        .map((channel) => {
          const day = dayAt(size.nowMs - back * dayMs);
          const period = `day#${day}#${modelAt(model)}#upstream-${channel}`;
          const calls = 20 + Math.floor(noise(model + channel) * 900);
          return Object.assign(figures(calls, model), { id: 'served', period, day });
        }),
    ),
  );

const minuteRows = ({ nowMs, minutes = 24 * 60 }: RelaySize): Row[] =>
  range(minutes).map((back) => {
    const iso = new Date(Math.floor(nowMs / 60_000 - back) * 60_000).toISOString();
    const calls = Math.floor(60 + 40 * Math.sin(back / 40) + 25 * noise(back));
    return Object.assign(figures(calls, back), {
      id: `minutes#${iso.slice(0, 10)}`,
      period: `minute#${iso.slice(0, 16)}`,
      expires: Math.floor(nowMs / 1000) + 172_800,
    });
  });

/** The first account called 20 models for a month, the second all of them for eight days. */
const dayRows = ({ models, nowMs }: RelaySize): Row[] =>
  [
    { account: accountAt(0), called: Math.min(models, 20), days: 30 },
    { account: accountAt(1), called: models, days: 8 },
  ].flatMap(({ account, called, days }) =>
    range(days).flatMap((back) =>
      range(called).map((model) => {
        const day = dayAt(nowMs - back * dayMs);
        const period = `day#${day}#${modelAt(model)}`;
        const calls = Math.floor(noise(model + back) * 300);
        return Object.assign(figures(calls, back), { id: `account#${account}`, period, day });
      }),
    ),
  );

/** The complete previous month. */
export const invoicedMonth = (nowMs: number): string =>
  dayAt(Date.parse(`${dayAt(nowMs).slice(0, 7)}-01`) - dayMs).slice(0, 7);

/** What the first channel sent to its vendor in that month. */
const boughtRows = (size: RelaySize): Row[] =>
  range(28).flatMap((back) =>
    range(size.models)
      .filter((model) => serves(0, model, size))
      .map((model) => {
        const day = `${invoicedMonth(size.nowMs)}-${String(back + 1).padStart(2, '0')}`;
        const period = `day#${day}#${modelAt(model)}`;
        const calls = 1 + Math.floor(noise(model + back) * 300);
        return Object.assign(figures(calls, back), { id: formatChannelId('upstream-0'), period });
      }),
  );

/** An invoice with more lines than a page shows; some belong to the channel. */
export const invoiceOf = (lines: number, models: number): string =>
  ['Model,Amount']
    .concat(
      range(lines).map((at) => `${at < models ? modelAt(at) : `other-${at}`},${1 + (at % 90)}.${at % 10}`),
    )
    .join('\n');

const ledgerRow = (at: number, { nowMs }: RelaySize): Row => {
  const beganMs = nowMs - (at + 1) * 45_000;
  const isReleased = at % 23 === 4;
  return {
    account: accountAt(0),
    id: `${timeText(beganMs)}${at.toString(16).padStart(16, '0')}`,
    at: new Date(beganMs + 4000).toISOString().replace(/\.\d+Z/, 'Z'),
    kind: isReleased ? 'released' : 'settled',
    endpoint: 'chat',
    model: modelAt(at % 20),
    key: hashOf(1).slice(0, 12),
    charge: isReleased ? 0 : 0.0126,
    reserved: 0.05,
    prompt_tokens: 2000,
    completion_tokens: 420,
    end: isReleased ? 'failed' : at % 17 === 2 ? 'client_gone' : 'completed',
    price: 'token:3:0.003,0.012',
    channel: 'upstream-0',
    upstream_model: 'model',
    first_content_ms: 300 + (at % 50) * 31,
  };
};

export const put = (client: DynamoDBClient, table: TableName, rows: Row[]): Promise<void> =>
  bulkWrite(client, physicalNameOf('relay', table), rows.map(attributesOf));
