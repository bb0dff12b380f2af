import type { Subscription } from '../../shared/billing/reservation.ts';
import type { Grant } from '../../shared/billing/ledger-row.ts';
import type { Payment, PaymentChange, SeenAccount } from '../../shared/billing/payments.ts';
import type { PaymentStore, PaymentWrite } from '../../shared/relay/ports/money-stores.ts';

/** The payment store in memory; it passes the same contract as the DynamoDB adapter. */
export class MemoryPaymentStore implements PaymentStore {
  readonly payments = new Map<string, Payment>();
  /** By account and id. */
  readonly grants = new Map<string, Grant>();
  readonly accounts: Set<string>;
  readonly plans = new Map<string, Subscription>();
  reads = 0;
  /** Runs before each call and after each write: may wait or reject. */
  disturb: ((moment: 'before' | 'after') => Promise<void>) | undefined;

  constructor(accounts: string[] = []) {
    this.accounts = new Set(accounts);
  }

  async find(id: string): Promise<Payment | undefined> {
    this.reads += 1;
    await this.disturb?.('before');
    return structuredClone(this.payments.get(id));
  }

  async write({ before, after, grants, plan }: PaymentChange): Promise<PaymentWrite> {
    await this.disturb?.('before');
    const stored = this.payments.get(after.id);
    if (stored?.version !== before?.version) return 'outdated';
    const taken = grants.filter((grant) => this.grants.has(nameOf(grant))).map(({ grant_id }) => grant_id);
    if (taken.length > 0) return { taken };
    if (plan) {
      if (this.plans.get(plan.seen.account) !== plan.seen.plan) return 'outdated';
      this.plans.set(plan.seen.account, plan.plan);
    }
    this.payments.set(after.id, structuredClone(after));
    for (const grant of grants) this.grants.set(nameOf(grant), grant);
    await this.disturb?.('after');
    return 'written';
  }

  async account(account: string): Promise<SeenAccount | undefined> {
    this.reads += 1;
    await this.disturb?.('before');
    const plan = this.plans.get(account);
    return this.accounts.has(account) ? { account, plan, stored: { plan } } : undefined;
  }

  async *all(): AsyncIterable<{ row: Payment }[]> {
    yield [...this.payments.values()].map((row) => ({ row }));
  }
}

const nameOf = ({ account, grant_id }: Grant): string => `${account} ${grant_id}`;
