import { AccountRow } from '../../shared/config/rows/account-row.ts';
import type { OpenEntry, QuotaItem } from '../../shared/billing/quota-item.ts';
import { CoreRig, demoKey, keyRow, type Answer, type RigOptions } from './core-rig.ts';

export const ask = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
export const stream = { ...ask, stream: true };

/** `ask` is estimated at 5 tokens and bounded by 22; with 78 output tokens it has 100 at most. */
export const small = { ...ask, max_tokens: 78 };

/** 0.001 yuan per input token, 0.002 per output token: 1,000,000 and 2,000,000 nano-yuan. */
export const byTokens = { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2 };
export const byCall = { id: 2, type: 'times-billing', models: ['m'], output: 0.5 };
export const free = { id: 3, type: 'non-billing', models: ['m'] };
export const yuan = 1_000_000_000n;
/** 22 input tokens and 78 output tokens. */
export const smallNeed = 178_000_000n;

const since = '2026-11-10T00:00:00Z';

export interface BillingOptions extends RigOptions {
  key?: Record<string, unknown>;
  /** Entries of the account's plan. */
  plan?: Record<string, unknown>[];
}

/** The pipeline with one billing rule, one key and, on request, a plan. */
export class BillingRig extends CoreRig {
  #calls = 0;

  constructor({ key = {}, plan, ...options }: BillingOptions = {}) {
    const account = plan && AccountRow.parse({ account: 'acme', plan: { level: 1, since } });
    super({
      charges: [byTokens],
      keys: { [demoKey]: { row: keyRow(key), account } },
      plans: plan ? [{ level: 1, items: plan }] : [],
      ...options,
      settings: { subscriptionEnabled: plan !== undefined, ...options.settings },
    });
  }

  granted(amount: bigint): this {
    this.quotas.grant('acme', amount);
    return this;
  }

  /** Like `post`, but each call has its own id. */
  async call(body: unknown = small, options: Parameters<CoreRig['post']>[1] = {}): Promise<Answer> {
    this.#calls += 1;
    return this.post(body, { id: `01call${String(this.#calls).padStart(20, '0')}`, ...options });
  }

  get item(): QuotaItem | undefined {
    return this.quotas.items.get('acme');
  }

  get open(): OpenEntry[] {
    return [...(this.item?.open.values() ?? [])];
  }
}
