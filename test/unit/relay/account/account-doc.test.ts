import { describe, expect, it } from 'vitest';
import { computeCharge } from '../../../../shared/billing/usage.ts';
import { parsePrice, type Price } from '../../../../shared/billing/price.ts';
import { formatYuan } from '../../../../shared/billing/money.ts';
import { createQuotaItem } from '../../../../shared/billing/quota-item.ts';
import { defaultSettings } from '../../../../shared/config/settings.ts';
import { noFigures } from '../../../../shared/billing/daily-figures.ts';
import { describeDay, listUsage } from '../../../../shared/relay/account/account-usage.ts';
import { accountBody } from '../../../../shared/relay/account/account-handle.ts';
import { requestTimeMs } from '../../../../shared/wire/ids.ts';
import { billingPage as page, exampleOf } from '../../../support/billing-examples.ts';
import { keyRow } from '../../../support/core-rig.ts';

interface Row {
  id: string;
  created: number;
  charge: number;
  price: string;
  prompt_tokens: number;
  completion_tokens: number;
}
const exampleRow = (exampleOf('list')?.['data'] as Row[] | undefined)?.[0];

/** All keys, including nested ones, so that an example has exactly the fields of an answer. */
function keysOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(keysOf);
  if (typeof value !== 'object' || value === null) return '';
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, keysOf(inner)]));
}

describe('docs/billing.md', () => {
  it('shows an account in the relay’s own form', () => {
    const item = { id: 'chat', name: 'Chat calls', icon: '', value: 1000, models: ['m'] };
    const price = {
      type: 'token-billing' as const,
      input: 0.01,
      output: 0.04,
      anonymous: false,
      service_tiers: { flex: 0.5 },
    };
    const answer = accountBody({
      account: {
        account: 'acme',
        plan: { level: 1, since: 0, until: 2e12 },
        prices: [{ models: ['m'], factor: 0.8 }],
      },
      quota: createQuotaItem('acme'),
      key: keyRow({ models: ['m'], max_concurrency: 10, rpm: 60, budget: { amount: '5', period: 'month' } }),
      snapshot: {
        plans: [{ level: 1, price: 0, items: [item] }],
        settings: { ...defaultSettings, subscriptionEnabled: true, notices: [{ text: 'x', models: ['m'] }] },
        charges: [
          { id: 1, ...price, models: ['m'], tiers: [], service_tiers: undefined },
          { id: 2, ...price, models: ['m'], from: 2e12 },
        ],
        models: ['m'],
      },
      months: [],
      budgets: [{ by: 'tag:team', name: '*', amount: 1, period: 'day', used: null, resets_at: 0 }],
      refusals: [{ account: 'acme', hour: '2026-11-21T11', counts: { insufficient_quota: 3 } }],
      days: {
        from: 0,
        data: [describeDay({ key: { id: 'account#acme', period: 'day#2026-11-21#m' }, figures: noFigures })],
      },
      nowMs: 1e12,
    });
    expect(keysOf(exampleOf('account'))).toEqual(keysOf(answer));
    const { available, reserved, spent, granted } = exampleOf('account') as Record<string, number>;
    expect((available ?? 0) + (reserved ?? 0) + (spent ?? 0)).toBe(granted);
  });

  it('shows usage in the relay’s own form', async () => {
    const row = {
      account: 'acme',
      id: exampleRow?.id ?? '',
      at: '2026-11-22T10:00:05Z',
      kind: 'settled' as const,
      model: 'gpt-4o',
      key: '6f2d3c5e8a1b',
      tags: { team: 'search' },
      charge: 46_800_000n,
      reserved: 0n,
      price: '1:tokens:0.018:0.072',
    };
    const reader = {
      requests: async () => [row],
      grants: async () => [],
      late: async () => [],
    };
    const answer = await listUsage(reader, 'acme', new URLSearchParams());
    expect(keysOf(exampleOf('list'))).toEqual(keysOf(answer));
    expect(answer.data[0]).toMatchObject({ created: exampleRow?.created, charge: exampleRow?.charge });
    expect(requestTimeMs(row.id)).toBeDefined();
  });

  it('computes its example with the relay’s own result', () => {
    const { prompt_tokens = 0, completion_tokens = 0, price = '', charge } = exampleRow ?? {};
    const usage = { prompt_tokens, completion_tokens };
    const outcome = { failed: false, anyContent: true, usage };
    expect(formatYuan(computeCharge(parsePrice(price) as Price, outcome))).toBe(String(charge));
    expect(page).toContain('0.0468 yuan');
  });
});
