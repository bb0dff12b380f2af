/**
 * The demo rows that a new data folder starts with: key, account, channel, prices, and channels to the vendor
 * doubles.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AwsCalls } from '../../shared/adapters/aws/aws-calls.ts';
import { attributesOf, callConditionally } from '../../shared/adapters/dynamodb/table-client.ts';
import { tableSchemas } from '../../shared/tables/table-schemas.ts';
import { physicalNameOf, type TableName } from '../../shared/tables/table-names.ts';
import { keyHash, keyHint } from '../../shared/wire/ids.ts';
import { readOrCreateSecret } from './host/local-options.ts';
import { demoModels } from './vendors/demo.ts';

const stackName = 'relay';

/** The demo key that is printed at start. It stays the same as long as the data folder exists. */
export const readOrCreateDemoKey = (dataFolder: string | undefined): string =>
  readOrCreateSecret(dataFolder, 'demo-key', /^sk-/, `sk-${randomBytes(24).toString('base64url')}`);

/** Writes rows that are missing. */
export async function seedRows(callAws: AwsCalls, rows: readonly SeedRow[]): Promise<void> {
  const putIfAbsent = ({ table, row }: SeedRow) =>
    callConditionally(() =>
      callAws('PutItem', {
        TableName: physicalNameOf(stackName, table),
        Item: attributesOf(row),
        ConditionExpression: 'attribute_not_exists(#key)',
        ExpressionAttributeNames: { '#key': tableSchemas[table].partitionKey.name },
      }),
    );
  await Promise.all(rows.map(putIfAbsent));
}

/**
 * Writes missing demo rows, and updates the endpoints of demo channels to the current ports.
 * @param endpointOf where the double of a vendor, or the one of the demo, listens in this run
 */
export async function seedDemo(
  callAws: AwsCalls,
  endpointOf: (vendor: string) => string,
  key: string,
): Promise<void> {
  const rows = [...buildDemoRows(endpointOf('demo'), key), ...buildVendorRows(endpointOf)];
  await seedRows(callAws, rows);
  const updateEndpoint = ({ id, endpoint }: Record<string, unknown>) =>
    callConditionally(() =>
      callAws('UpdateItem', {
        TableName: physicalNameOf(stackName, 'channels'),
        Key: attributesOf({ id }),
        UpdateExpression: 'SET endpoint = :endpoint',
        ConditionExpression: 'attribute_exists(id) AND endpoint <> :endpoint',
        ExpressionAttributeValues: attributesOf({ ':endpoint': endpoint }),
      }),
    );
  const channels = rows.filter(({ table }) => table === 'channels');
  await Promise.all(channels.map(({ row }) => updateEndpoint(row)));
}

const grantWaitMs = 10_000;

/** Waits for the demo account's grant, so that the first call with the printed key finds the balance. */
export async function waitForDemoGrant(callAws: AwsCalls): Promise<void> {
  const input = {
    TableName: physicalNameOf(stackName, 'quotas'),
    Key: attributesOf({ account: demoAccount }),
  };
  for (const endMs = Date.now() + grantWaitMs; Date.now() < endMs;) {
    const { Item } = (await callAws('GetItem', input)) as { Item?: object };
    if (Item !== undefined) return;
    await sleep(50);
  }
}

interface SeedRow {
  table: TableName;
  row: Record<string, unknown>;
}

const demoAccount = 'demo';

/** The row of a key, with its hash and the hint that lists show. */
export function buildKeyRow(key: string): Record<string, unknown> {
  return {
    hash: keyHash(key),
    account: demoAccount,
    agent: 'api',
    enabled: true,
    hint: keyHint(key),
  };
}

/** Rows for a working relay: channel to the demo upstream, price, plan, demo key, account with a balance. */
export function buildDemoRows(upstreamEndpoint: string, key: string): SeedRow[] {
  return [
    {
      table: 'channels',
      row: {
        id: 'demo',
        name: 'Built-in demo upstream',
        type: 'openai',
        endpoint: upstreamEndpoint,
        models: demoModels,
        priority: 0,
        state: true,
      },
    },
    {
      table: 'charges',
      row: { id: 1, type: 'token-billing', models: ['demo-chat'], input: 0.001, output: 0.002 },
    },
    {
      table: 'charges',
      row: { id: 3, type: 'token-billing', models: ['demo-embedding'], input: 0.0005, output: 0 },
    },
    {
      table: 'plans',
      row: {
        level: 1,
        price: 30,
        items: [
          { id: 'demo', name: 'Demo calls', icon: '', value: 1000, models: ['demo-chat', 'demo-vision'] },
        ],
      },
    },
    { table: 'settings', row: { name: 'relay_closed', value: false } },
    { table: 'settings', row: { name: 'subscription.enabled', value: true } },
    {
      table: 'accounts',
      row: { account: demoAccount, plan: { level: 1, since: '2026-01-01' }, note: 'made by the demo seed' },
    },
    {
      table: 'grants',
      row: { account: demoAccount, grant_id: 'demo', amount: 100, reason: 'made by the demo seed' },
    },
    { table: 'keys', row: buildKeyRow(key) },
  ];
}

/** A channel to OpenAI; functions read its key from their environment. */
export const realChannelRow: SeedRow = {
  table: 'channels',
  row: {
    id: 'openai',
    name: 'OpenAI',
    type: 'openai',
    endpoint: 'https://api.openai.com/v1',
    secret: 'env:OPENAI_API_KEY',
    models: ['gpt-5', 'gpt-5-mini', 'gpt-5-nano', 'gpt-4.1', 'gpt-4.1-mini', 'gpt-4o', 'gpt-4o-mini'],
    priority: 0,
    state: true,
  },
};

/** The models of vendor doubles, under the names that demo clients use. */
const vendorModels: [model: string, vendor: string, upstream: string, row: Record<string, unknown>][] = [
  ['demo-gpt', 'openai', 'gpt-5.6', { name: 'OpenAI, as it behaves', type: 'openai', dialect: 'responses' }],
  ['demo-gemini', 'gemini', 'gemini-3-pro-preview', { name: 'Gemini, as it behaves', type: 'gemini' }],
  ['demo-deepseek', 'deepseek', 'deepseek-v4-pro', { name: 'DeepSeek, as it behaves', type: 'openai' }],
  ['demo-claude', 'anthropic', 'claude-opus-5-5', { name: 'Anthropic, as it behaves', type: 'anthropic' }],
  [
    'demo-bedrock',
    'bedrock',
    'us.anthropic.claude-opus-5-5-v1:0',
    { name: 'Bedrock, as it behaves', type: 'bedrock', region: 'us-east-1' },
  ],
  [
    'demo-picky',
    'picky',
    'picky',
    {
      name: 'A picky self-hosted server',
      type: 'openai',
      params: { system: 'first', null_content: 'empty', call_ids: 'alnum9' },
    },
  ],
];

/** A channel to each vendor double, and a price. `endpointOf`: the address that a row names for a double. */
export const buildVendorRows = (endpointOf: (vendor: string) => string): SeedRow[] => [
  {
    table: 'charges',
    row: {
      id: 2,
      type: 'token-billing',
      models: vendorModels.map(([model]) => model),
      input: 0.002,
      output: 0.008,
    },
  },
  ...vendorModels.map(([model, vendor, upstream, row]) => ({
    table: 'channels' as const,
    row: {
      id: model,
      endpoint: endpointOf(vendor),
      models: [model],
      mapper: { [model]: upstream },
      priority: 0,
      state: true,
      ...row,
    },
  })),
];
