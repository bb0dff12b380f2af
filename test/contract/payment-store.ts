import { describe, expect, test } from 'vitest';
import type { Grant } from '../../shared/billing/ledger-row.ts';
import type { Payment } from '../../shared/billing/payments.ts';
import type { PaymentStore } from '../../shared/relay/ports/money-stores.ts';

export interface PaymentStoreHost extends AsyncDisposable {
  store: PaymentStore;
  /** The rows of `grants`, as `account id amount reason`. */
  grants: () => Promise<string[]>;
}

const payment = (changes: Partial<Payment> = {}): Payment => ({
  id: 'pi_1',
  version: 1,
  state: 'granted',
  at: '2026-11-21T00:00:00Z',
  paid: { minor: 1000n, currency: 'usd' },
  rate: '7.123456',
  account: 'acme',
  problem: undefined,
  live: true,
  reversals: {},
  ...changes,
});

const grant = (grant_id: string, amount = 71_234_560_000n): Grant => ({
  account: 'acme',
  grant_id,
  amount,
  reason: 'payment of 10 usd',
});

/** The contract of payment stores. `open` returns a store that is empty except for the account `acme`. */
export function paymentStoreContract(name: string, open: () => Promise<PaymentStoreHost>): void {
  describe(`payments ${name}`, () => {
    test('are read back as written, together with their grants', async () => {
      await using host = await open();
      const { store } = host;
      expect(await store.find('pi_1')).toBeUndefined();
      const written = payment({
        card: { customer: 'cus_1', method: 'pm_1' },
        reversals: {
          re_1: { kind: 'refund', state: 'taken', minor: 400n, currency: 'usd' },
          dp_1: { kind: 'dispute', state: 'returned', minor: 9_007_199_254_740_991n, currency: 'usd' },
          re_2: { kind: 'refund', state: 'void', minor: 1n, currency: 'eur' },
          dp_2: { kind: 'dispute', state: 'taken', minor: 3n, currency: 'usd', grewFrom: [1n, 2n] },
        },
      });
      const grants = [grant('pi_1'), grant('re_1', -28_493_824_000n)];
      expect(await store.write({ before: undefined, after: written, grants })).toBe('written');
      expect(await store.find('pi_1')).toEqual(written);
      expect(await Array.fromAsync(store.all())).toEqual([[{ row: written }]]);
      expect(await host.grants()).toEqual([
        'acme pi_1 71.23456 payment of 10 usd',
        'acme re_1 -28.493824 payment of 10 usd',
      ]);
    });

    test('are read back as written without an amount, and while parked without a rate', async () => {
      await using host = await open();
      const { store } = host;
      const parts = { paid: undefined, rate: undefined, account: undefined, live: undefined };
      const expected = payment({ state: 'expected', ...parts });
      const parked = payment({
        id: 'pi_2',
        state: 'parked',
        rate: undefined,
        live: false,
        problem: 'no rate',
      });
      for (const after of [expected, parked]) {
        expect(await store.write({ before: undefined, after, grants: [] })).toBe('written');
        const found = await store.find(after.id);
        expect({ ...after, ...found }).toEqual(after);
      }
    });

    test('are not written after a concurrent change, and neither are their grants', async () => {
      await using host = await open();
      const { store } = host;
      const [first, second] = [payment(), payment({ version: 2, state: 'rejected' })];
      await store.write({ before: undefined, after: first, grants: [] });
      const grants = [grant('pi_1')];
      expect(await store.write({ before: undefined, after: first, grants })).toBe('outdated');
      expect(await store.write({ before: first, after: second, grants: [] })).toBe('written');
      expect(await store.write({ before: first, after: second, grants })).toBe('outdated');
      expect(await store.find('pi_1')).toMatchObject({ state: 'rejected' });
      expect(await host.grants()).toEqual([]);
    });

    test('are not written when their grant already exists, and the grant stays unchanged', async () => {
      await using host = await open();
      const { store } = host;
      const other = payment({ id: 'pi_0' });
      await store.write({ before: undefined, after: other, grants: [grant('pi_1', 5_000_000_000n)] });
      const grants = [grant('re_1', -1n), grant('pi_1')];
      expect(await store.write({ before: undefined, after: payment(), grants })).toEqual({ taken: ['pi_1'] });
      expect(await store.find('pi_1')).toBeUndefined();
      expect(await host.grants()).toEqual(['acme pi_1 5 payment of 10 usd']);
    });

    test('are written by one of ten concurrent writers', async () => {
      await using host = await open();
      const { store } = host;
      const writers = Array.from({ length: 10 }, () =>
        store.write({ before: undefined, after: payment(), grants: [grant('pi_1')] }).catch(() => 'busy'),
      );
      const outcomes = await Promise.all(writers);
      expect(outcomes.filter((outcome) => outcome === 'written')).toHaveLength(1);
      expect(await host.grants()).toHaveLength(1);
    });

    test('set the plan of an account together with the payment for it, or write neither', async () => {
      await using host = await open();
      const { store } = host;
      const seen = await store.account('acme');
      const plan = { level: 2, since: Date.UTC(2026, 10, 21), until: Date.UTC(2026, 11, 21) };
      const bought = { from: plan.since, until: plan.until };
      const after = payment({ state: 'plan', level: 2, bought });
      const change = { before: undefined, after, grants: [], plan: seen && { seen, plan } };
      expect(await store.write(change)).toBe('written');
      expect(await store.find('pi_1')).toEqual(after);
      expect((await store.account('acme'))?.plan).toEqual(plan);
      const other = { ...change, after: { ...after, id: 'pi_2' } };
      expect(await store.write(other)).toBe('outdated');
      expect(await store.find('pi_2')).toBeUndefined();
    });

    test('know which accounts have a row', async () => {
      await using host = await open();
      expect(await host.store.account('acme')).toMatchObject({ account: 'acme' });
      expect(await host.store.account('gone')).toBeUndefined();
    });
  });
}
