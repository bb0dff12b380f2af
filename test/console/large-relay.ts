import type { AttributeValue, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { marshall } from '@aws-sdk/util-dynamodb';
import { emptyAttributes } from '../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { physicalTableName, type TableName } from '../../shared/tables/table-names.ts';
import { timeText } from '../../shared/wire/ids.ts';
import { bulkWrite } from '../support/bulk-write.ts';

type Row = Record<string, unknown>;
type Item = Record<string, AttributeValue>;

export interface RelaySize {
  nowMs: number;
  accounts: number;
  models: number;
  channels: number;
  /** Ledger rows of the first account. A page never reads rows of two accounts. */
  rows: number;
}

const dayMs = 86_400_000;
const hashOf = (index: number): string => index.toString(16).padStart(8, '0').repeat(8);
export const accountAt = (index: number): string => `customer-${String(index).padStart(5, '0')}`;
export const modelAt = (index: number): string => `vendor-${index % 12}/model-${index}`;
const dayAt = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Deterministic, between 0 and 1. */
const noise = (seed: number): number => {
  const value = Math.sin(seed * 12.9898) * 43_758.5453;
  return value - Math.floor(value);
};

/** Fills the tables as a relay of this size has them, with the rows that pages could read. */
export async function seedRelay(client: DynamoDBClient, size: RelaySize): Promise<void> {
  await Promise.all([
    put(client, 'channels', channelRows(size)),
    put(client, 'charges', chargeRows(size)),
    put(client, 'settings', [
      { name: 'unpriced_models', value: 'refuse' },
      { name: 'subscription.enabled', value: true },
    ]),
    put(client, 'plans', planRows(size)),
  ]);
  await put(
    client,
    'accounts',
    range(size.accounts).map((at) => accountRow(at)),
  );
  await put(
    client,
    'keys',
    range(size.accounts).map((at) => keyRow(at)),
  );
  await bulkWrite(
    client,
    physicalTableName('relay', 'quotas'),
    range(size.accounts).map((at) => quotaItem(at, size)),
  );
  await put(client, 'daily', [
    ...monthRows(size),
    ...servedRows(size),
    ...minuteRows(size),
    ...dayRows(size),
  ]);
  await put(
    client,
    'grants',
    range(40).map((at) => grantRow(at)),
  );
  await put(
    client,
    'ledger',
    range(size.rows).map((at) => ledgerRow(at, size)),
  );
}

const range = (count: number): number[] => Array.from({ length: count }, (_, at) => at);

const channelRows = ({ channels, models }: RelaySize): Row[] =>
  range(channels).map((at) => ({
    id: `upstream-${at}`,
    name: `Vendor ${at}, team account`,
    endpoint: `https://api.vendor-${at}.example.com/v1`,
    secret: `ssm:/relay/relay/vendor-${at}`,
    models: range(models)
      .filter((model) => model % Math.ceil(channels / 2) === at % Math.ceil(channels / 2))
      .map(modelAt),
    priority: 10 - at,
    weight: 1 + (at % 3),
    state: at !== channels - 1,
    cost: { '*': { input: 0.002, output: 0.008 } },
    _by: 'arn:aws:sts::111122223333:assumed-role/relay-operator/li',
    _at: '2026-11-20T09:12:44Z',
  }));

const chargeRows = ({ models }: RelaySize): Row[] =>
  range(models).map((at) => ({
    id: at + 1,
    type: 'token-billing',
    models: [modelAt(at)],
    input: 0.003 + (at % 7) / 1000,
    output: 0.012 + (at % 9) / 1000,
    cached_input: 0.001,
  }));

const planRows = ({ models }: RelaySize): Row[] =>
  [1, 2].map((level) => ({
    level,
    price: level * 99,
    items: [
      {
        id: `chat-${level}`,
        name: 'Chat',
        models: range(Math.min(models, 20)).map(modelAt),
        type: 'count',
        value: level * 1000,
      },
    ],
  }));

const accountRow = (at: number): Row => ({
  account: accountAt(at),
  ...(at % 40 === 0 && { plan: { level: 1, since: '2026-01-01' } }),
  ...(at % 97 === 0 && { note: 'pays by invoice, talk to Wei before switching off' }),
  ...(at % 500 === 7 && { enabled: false }),
  _by: 'arn:aws:sts::111122223333:assumed-role/relay-operator/li',
  _at: '2026-11-02T10:00:00Z',
});

const keyRow = (at: number): Row => ({
  hash: hashOf(at + 1),
  account: accountAt(at),
  hint: `sk-${hashOf(at + 1).slice(4, 8)}...${hashOf(at + 1).slice(-4)}`,
  enabled: at % 11 !== 3,
  ...(at % 9 === 0 && { models: [modelAt(at % 50)], rpm: 60 }),
  _created: '2026-06-01T08:00:00Z',
  _by: 'arn:aws:sts::111122223333:assumed-role/relay-operator/li',
});

function quotaItem(at: number, { nowMs }: RelaySize): Item {
  const granted = 50 + Math.floor(noise(at) * 450);
  const spent = (granted * Math.floor(noise(at + 0.5) * 1000)) / 1000;
  return {
    ...emptyAttributes({ account: accountAt(at) }),
    available: { N: String(BigInt(Math.round((granted - spent) * 1e9))) },
    spent: { N: String(BigInt(Math.round(spent * 1e9))) },
    granted: { N: String(BigInt(granted) * 1_000_000_000n) },
    settled: { N: String(at === 0 ? 180_000 : Math.floor(noise(at + 0.2) * 400)) },
    last: {
      L: [
        { S: `${timeText(nowMs - at * 60_000)}0000000000000000` },
        { S: 'settled' },
        { N: '1000' },
        { N: String(Math.floor((nowMs - at * 60_000) / 1000)) },
      ],
    },
  };
}

const figures = (calls: number, seed: number): Row => ({
  calls,
  failures: Math.floor(calls * 0.02 * noise(seed)),
  prompt_tokens: calls * 2300,
  completion_tokens: calls * 410,
  charged: Number((calls * 0.0142).toFixed(6)),
});

const buckets = (calls: number): Row => ({
  bought: Number((calls * 0.0089).toFixed(6)),
  bought_charged: Number((calls * 0.0142).toFixed(6)),
  first_content_500: Math.floor(calls * 0.5),
  first_content_1000: Math.floor(calls * 0.3),
  first_content_2000: Math.floor(calls * 0.15),
  first_content_4000: Math.floor(calls * 0.05),
});

const monthRows = ({ accounts, nowMs }: RelaySize): Row[] =>
  range(accounts).map((at) =>
    Object.assign(figures(Math.floor(noise(at) * 4000), at), {
      id: `month#${dayAt(nowMs).slice(0, 7)}`,
      period: `account#${accountAt(at)}`,
    }),
  );

/** Eight days: comparisons of edits look back on seven, lists of channels on as many as they may. */
const servedRows = ({ models, channels, nowMs }: RelaySize): Row[] =>
  range(8).flatMap((back) =>
    range(models).flatMap((model) =>
      range(channels)
        .filter((channel) => model % Math.ceil(channels / 2) === channel % Math.ceil(channels / 2))
        .map((channel) => {
          const calls = 20 + Math.floor(noise(model + channel) * 900);
          const day = dayAt(nowMs - back * dayMs);
          return Object.assign(figures(calls, model), buckets(calls), {
            id: 'served',
            period: `day#${day}#${modelAt(model)}#upstream-${channel}`,
            day,
            bought_calls: calls,
          });
        }),
    ),
  );

function minuteRows({ nowMs }: RelaySize): Row[] {
  const lastMs = Math.floor(nowMs / 60_000) * 60_000;
  return range(24 * 60).map((back) => {
    const iso = new Date(lastMs - back * 60_000).toISOString();
    const calls = Math.floor(60 + 40 * Math.sin(back / 40) + 25 * noise(back));
    return Object.assign(figures(calls, back), buckets(calls), {
      id: `minutes#${iso.slice(0, 10)}`,
      period: `minute#${iso.slice(0, 16)}`,
      failures: back % 47 < 3 ? Math.floor(calls * 0.2) : Math.floor(noise(back) * 2),
      expires: Math.floor(nowMs / 1000) + 172_800,
    });
  });
}

/** The first account called 20 models for a month, the second all of them for ten days. */
const dayRows = (size: RelaySize): Row[] => [
  ...daysOf(accountAt(0), { ...size, models: Math.min(size.models, 20), days: 30 }),
  ...daysOf(accountAt(1), { ...size, days: 10 }),
];

const daysOf = (account: string, { models, nowMs, days }: RelaySize & { days: number }): Row[] =>
  range(days).flatMap((back) =>
    range(models).map((model) => {
      const day = dayAt(nowMs - back * dayMs);
      const calls = Math.floor(noise(model + back) * 300);
      return Object.assign(figures(calls, back), buckets(calls), {
        id: `account#${account}`,
        period: `day#${day}#${modelAt(model)}`,
        day,
        cached_tokens: calls * 700,
        bought_calls: calls,
      });
    }),
  );

const grantRow = (at: number): Row => ({
  account: accountAt(0),
  grant_id: `invoice-${String(4000 + at)}`,
  amount: 100 + at,
  reason: 'paid by card',
  ...(at !== 39 && { _applied: '2026-11-01T08:00:00Z' }),
});

const ledgerRow = (at: number, { nowMs }: RelaySize): Row => ({
  account: accountAt(0),
  id: `${timeText(nowMs - (at + 1) * 45_000)}${at.toString(16).padStart(16, '0')}`,
  at: new Date(nowMs - (at + 1) * 45_000 + 4000).toISOString().replace(/\.\d+Z/, 'Z'),
  kind: at % 23 === 4 ? 'released' : 'settled',
  endpoint: 'chat',
  model: modelAt(at % 20),
  key: hashOf(1).slice(0, 12),
  charge: at % 23 === 4 ? 0 : 0.0126,
  reserved: 0.05,
  prompt_tokens: 2000,
  completion_tokens: 420,
  end: at % 23 === 4 ? 'failed' : at % 17 === 2 ? 'client_gone' : 'completed',
  price: 'token:3:0.003,0.012',
  channel: 'upstream-0',
  upstream_model: 'model',
  first_content_ms: 300 + (at % 50) * 31,
});

export const put = (client: DynamoDBClient, table: TableName, rows: Row[]): Promise<void> =>
  bulkWrite(
    client,
    physicalTableName('relay', table),
    rows.map((row) => marshall(row)),
  );
