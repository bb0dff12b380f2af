import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatYuan } from '../../../../shared/billing/money.ts';
import {
  applyFact,
  assignPayment,
  rejectPayment,
  type PaidFact,
  type Payment,
  type ReversalFact,
  grantsOf,
  planPaymentChange,
} from '../../../../shared/billing/payments.ts';

const usd = (minor: bigint) => ({ minor, currency: 'usd' });
const at = '2026-11-21T00:00:00Z';
const paid: PaidFact = {
  kind: 'paid',
  payment: 'pi_1',
  at,
  paid: usd(1000n),
  live: true,
  rate: '7.1',
  account: 'acme',
  problem: undefined,
};
const reversal = (id: string, changes: Partial<ReversalFact['reversal']> = {}): ReversalFact => ({
  kind: 'reversal',
  payment: 'pi_1',
  at,
  id,
  reversal: { kind: 'refund', state: 'taken', ...usd(300n), ...changes },
});

const facts = [
  paid,
  paid,
  reversal('re_1'),
  reversal('re_1'),
  reversal('re_2', { state: 'returned' }),
  reversal('re_2'),
  reversal('dp_1', { kind: 'dispute', ...usd(1000n) }),
  reversal('dp_1', { kind: 'dispute', state: 'returned', ...usd(1000n) }),
  reversal('dp_2', { kind: 'dispute', ...usd(400n) }),
  reversal('dp_2', { kind: 'dispute', ...usd(450n) }),
  reversal('dp_2', { kind: 'dispute', ...usd(600n) }),
  reversal('dp_3', { kind: 'dispute', ...usd(100n) }),
  reversal('dp_3', { kind: 'dispute', ...usd(250n) }),
  reversal('dp_3', { kind: 'dispute', state: 'returned', ...usd(250n) }),
];

/** Plays facts, and collects each grant that a change brings about. */
function play(order: readonly (PaidFact | ReversalFact)[], first?: Payment) {
  let payment = first;
  const made: string[] = [];
  for (const fact of order) {
    const after = applyFact(payment, fact);
    made.push(...planPaymentChange(payment, after).grants.map(({ grant_id }) => grant_id));
    payment = after;
  }
  return { payment, made };
}

test('facts in any order come to the same sum, and each grant is made once', () => {
  fc.assert(
    fc.property(fc.shuffledSubarray(facts, { minLength: facts.length }), (order) => {
      const { payment, made } = play(order);
      expect(new Set(made).size).toBe(made.length);
      const grants = payment ? grantsOf(payment) : [];
      expect(made.toSorted()).toEqual(grants.map(({ grant_id }) => grant_id).toSorted());
      expect(formatYuan(grants.reduce((sum, { amount }) => sum + amount, 0n))).toBe('7.1');
    }),
  );
});

test('a fact that is known changes nothing, not even the version', () => {
  const { payment } = play(facts);
  for (const fact of facts) expect(applyFact(payment, fact)).toBe(payment);
});

test('a parked payment is granted by an operator or by a report without the problem, not by both', () => {
  const { payment: parked } = play([{ ...paid, account: undefined, problem: 'unknown' }, reversal('re_1')]);
  if (!parked) throw new Error('not parked');
  const { payment, made } = play([paid], assignPayment(parked, 'beta', '7.1'));
  expect(made).toEqual([]);
  expect(payment?.account).toBe('beta');
  expect(grantsOf(assignPayment(parked, 'beta', '7.1')).map(({ grant_id }) => grant_id)).toEqual([
    'pi_1',
    're_1',
  ]);
  expect(play([paid], parked).made).toEqual(['pi_1', 're_1']);
});

test('nothing is granted for a rejected payment, whatever is reported later', () => {
  const { payment: parked } = play([{ ...paid, account: undefined, problem: 'unknown' }]);
  if (!parked) throw new Error('not parked');
  expect(play([paid, reversal('re_1')], rejectPayment(parked)).made).toEqual([]);
});
