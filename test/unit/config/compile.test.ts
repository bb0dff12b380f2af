import { describe, expect, it } from 'vitest';
import { defaultSettings } from '../../../shared/config/settings.ts';
import { channelTypes } from '../../../shared/upstreams/types/channel-types.ts';
import { channel, compile } from './rows.ts';

describe('the snapshot', () => {
  it('is empty, with default settings, for empty tables', () => {
    expect(compile({})).toEqual({
      snapshot: {
        publishedAt: 1_800_000_000,
        channels: [],
        charges: [],
        plans: [],
        settings: defaultSettings,
        models: [],
      },
      rows: { channels: [], charges: [], plans: [], settings: [] },
      results: [],
    });
  });

  it('orders channels by priority, highest first, then by id, and omits disabled ones', () => {
    const { snapshot } = compile({
      channels: [
        channel({ id: 'b', priority: 1 }),
        channel({ id: 'low', priority: -1 }),
        channel({ id: 'off', priority: 9, state: false }),
        channel({ id: 'a', priority: '1' }),
        channel({ id: 'top', priority: 2 }),
        channel({ id: 'Z', priority: 1 }),
      ],
    });
    expect(snapshot.channels.map((row) => row.id)).toEqual(['top', 'Z', 'a', 'b', 'low']);
  });

  it('keeps a disabled channel while its vendor may still answer calls in background windows', () => {
    const params = { completion_windows: 'submit' };
    const { snapshot } = compile({
      channels: [
        channel({ id: 'off', state: false }),
        channel({ id: 'waits', state: false, params }),
        channel({ params }),
      ],
    });
    expect(snapshot.drainingChannels?.map((row) => row.id)).toEqual(['waits']);
  });

  it.each(['bedrock-runtime', 'bedrock-runtime-fips'])(
    'contains only the host of %s, and calls use the dialect',
    (host) => {
      const endpoint = `https://${host}.us-east-1.amazonaws.com`;
      const row = { type: 'bedrock', region: 'us-east-1', endpoint };
      const { snapshot } = compile({ channels: [channel(row)] });
      const [stored] = snapshot.channels;
      if (!stored) throw new Error();
      expect(stored.endpoint).toBe(endpoint);
      const called = { model: 'm', dialect: 'messages', path: '/messages' };
      expect(channelTypes.bedrock.address?.(stored, called)).toBe(`${endpoint}/anthropic/v1/messages`);
    },
  );

  it('lists each model once, in the order of channels and their lists', () => {
    const { snapshot } = compile({
      channels: [
        channel({ id: 'second', priority: 0, models: ['m3', 'm1'] }),
        channel({ id: 'first', priority: 5, models: ['m2', 'm1'] }),
        channel({ id: 'off', priority: 9, models: ['m0'], state: false }),
      ],
    });
    expect(snapshot.models).toEqual(['m2', 'm1', 'm3']);
  });

  it('orders charges by id and plans by level', () => {
    const { snapshot } = compile({
      charges: [10, 9, 100].map((id) => ({ id, type: 'token-billing', models: ['m'] })),
      plans: [{ level: 3 }, { level: 1 }, { level: 2 }],
    });
    expect(snapshot.charges.map((row) => row.id)).toEqual([9, 10, 100]);
    expect(snapshot.plans.map((row) => row.level)).toEqual([1, 2, 3]);
  });

  it('reads settings by name and uses defaults for the others', () => {
    const { snapshot, results } = compile({
      settings: [
        { name: 'relay_closed', value: 'TRUE' },
        { name: 'subscription.enabled', value: true },
        { name: 'unpriced_models', value: 'refuse' },
        { name: 'contact', value: 'ops@example.com' },
        { name: 'page', value: 'false' },
        { name: 'cors_origins', value: new Set(['https://b.example', 'https://a.example']) },
        { name: 'limits', value: { default_output_tokens: '1000' } },
      ],
    });
    expect(results.every((result) => result.problem === undefined)).toBe(true);
    expect(snapshot.settings).toEqual({
      ...defaultSettings,
      relayClosed: true,
      subscriptionEnabled: true,
      unpricedModels: 'refuse',
      contact: 'ops@example.com',
      page: false,
      corsOrigins: ['https://a.example', 'https://b.example'],
      limits: { defaultOutputTokens: 1000, requestSeconds: 600, stateDays: 30, countFree: true },
    });
  });

  it('omits an invalid row but keeps its neighbours, with one result for each row', () => {
    const { snapshot, results } = compile({
      channels: [channel({ id: 'bad', priority: 'high' }), channel({ id: 'good' })],
      charges: [{ id: 1, type: 'per-token', models: ['m'] }],
    });
    expect(snapshot.channels.map((row) => row.id)).toEqual(['good']);
    expect(snapshot.charges).toEqual([]);
    expect(results).toEqual([
      { table: 'channels', key: 'bad', problem: 'priority: found "high", expected a whole number' },
      {
        table: 'channels',
        key: 'good',
        warning: 'models: no price for gpt-4o, so calls are free',
      },
      {
        table: 'charges',
        key: 1,
        problem: 'type: found "per-token", expected "non-billing", "times-billing" or "token-billing"',
      },
    ]);
  });
});

describe('an unreadable boolean', () => {
  it.each([
    ['relay_closed', { value: 'yes' }, { relayClosed: true }, 'the relay is closed'],
    ['relay_closed', {}, { relayClosed: true }, 'the relay is closed'],
    ['relay_closed', { value: false, until: 'noon' }, { relayClosed: true }, 'the relay is closed'],
    ['subscription.enabled', { value: 'ja' }, { subscriptionEnabled: false }, 'subscriptions are disabled'],
    [
      'store',
      { value: 'ja' },
      { store: { allKeys: false } },
      'only keys with store set to true store responses',
    ],
  ])('%s %j falls back to the safe value, with a problem', (name, row, settings, said) => {
    const { snapshot, results } = compile({ settings: [{ name, ...row }] });
    expect(snapshot.settings).toMatchObject(settings);
    expect(results[0]?.problem).toContain(`until it is fixed, ${said}`);
  });

  it('does not close the relay when another setting has an unreadable row', () => {
    const limits = { name: 'limits', value: { request_seconds: 5000 } };
    const { snapshot, results } = compile({ settings: [limits, { name: 'relay-closed', value: true }] });
    expect(snapshot.settings).toEqual(defaultSettings);
    expect(results.map(({ problem }) => problem)).toEqual([
      'value.request_seconds: found 5000, expected a number of seconds, more than 0 and at most 890',
      expect.stringMatching(/name: unknown setting; use one of relay_closed, /),
    ]);
  });
});

describe('limits from the deployment', () => {
  const defaultLimits = { account_rpm: 60, request_seconds: 300 };

  it('apply while the setting has no row, with defaults for the missing ones', () => {
    const { snapshot, results } = compile({}, { defaultLimits });
    expect(snapshot.settings.limits).toMatchObject({
      ...defaultSettings.limits,
      accountRpm: 60,
      requestSeconds: 300,
    });
    // No row could carry a mark.
    expect(results).toEqual([]);
  });

  it('are replaced by the row as a whole', () => {
    const settings = [{ name: 'limits', value: { account_tpm: 1000 } }];
    const { limits } = compile({ settings }, { defaultLimits }).snapshot.settings;
    expect(limits).toMatchObject({ accountTpm: 1000, requestSeconds: defaultSettings.limits.requestSeconds });
    expect(limits.accountRpm).toBeUndefined();
  });

  it('apply while the row is unreadable', () => {
    const settings = [{ name: 'limits', value: { request_seconds: 5000 } }];
    expect(compile({ settings }, { defaultLimits }).snapshot.settings.limits.accountRpm).toBe(60);
  });
});
