import { keyHash } from '../../../shared/tables/key-hash.ts';
import { keyHint } from '../../../shared/wire/name-patterns.ts';
import type { TableName } from '../../../shared/tables/table-names.ts';
import { demoModels } from './request.ts';

export interface SeedRow {
  table: TableName;
  row: Record<string, unknown>;
}

export const demoAccount = 'demo';

/** The row of a key, with its hash and the hint that lists show. */
export function keyRow(key: string): Record<string, unknown> {
  return {
    hash: keyHash(key),
    account: demoAccount,
    agent: 'api',
    enabled: true,
    hint: keyHint(key),
  };
}

/** Rows for a working relay: channel to the demo upstream, price, plan, demo key, account with a balance. */
export function demoRows(upstreamEndpoint: string, key: string): SeedRow[] {
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
    { table: 'keys', row: keyRow(key) },
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
