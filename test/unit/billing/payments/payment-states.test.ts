import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bonusOf, bonusOfPart } from '../../../oracle/credits.ts';
import { formatYuan, parseYuan } from '../../../../shared/billing/money.ts';
import {
  applyFact,
  findBonus,
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
  bonus: undefined,
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

/** Applies facts, and collects each grant that a change causes. */
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

test('facts in any order give the same sum, and each grant is created once', () => {
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

test('a known fact changes nothing, not even the version', () => {
  const { payment } = play(facts);
  for (const fact of facts) expect(applyFact(payment, fact)).toBe(payment);
});

test('a parked payment is granted by an operator or by a report without the problem, but not by both', () => {
  const { payment: parked } = play([{ ...paid, account: undefined, problem: 'unknown' }, reversal('re_1')]);
  if (!parked) throw new Error('not parked');
  const { payment, made } = play([paid], assignPayment(parked, { account: 'beta', rate: '7.1' }));
  expect(made).toEqual([]);
  expect(payment?.account).toBe('beta');
  expect(
    grantsOf(assignPayment(parked, { account: 'beta', rate: '7.1' })).map(({ grant_id }) => grant_id),
  ).toEqual(['pi_1', 're_1']);
  expect(play([paid], parked).made).toEqual(['pi_1', 're_1']);
});

test('a rejected payment is never granted, whatever is reported later', () => {
  const { payment: parked } = play([{ ...paid, account: undefined, problem: 'unknown' }]);
  if (!parked) throw new Error('not parked');
  expect(play([paid, reversal('re_1')], rejectPayment(parked)).made).toEqual([]);
});

const steps = [
  { pay: 70.9, get: 81.234567891 },
  { pay: 142, get: 170 },
];

test.each([
  [999n, '10.334567891'],
  [998n, undefined],
  [2000n, '28'],
  [1_000_000n, '28'],
])(
  'a payment of %i cents gets the bonus of the highest step that it reaches, as in the oracle',
  (minor, bonus) => {
    expect(findBonus(steps, usd(minor), '7.1')).toBe(bonus);
    expect(bonusOf(steps, minor * 71_000_000n)).toBe(parseYuan(bonus ?? 0));
    expect(findBonus(steps, usd(minor), undefined)).toBeUndefined();
  },
);

/** A refund or dispute as the oracle reads it: the share of the payment that it finally took. */
const parts = fc.array(
  fc.record({ cents: fc.bigInt(1n, 400n), grown: fc.bigInt(0n, 50n), isReturned: fc.boolean() }),
  { maxLength: 6 },
);

test('a bonus is a separate grant, and refunds and disputes take the same share of it in any order', () => {
  fc.assert(
    fc.property(
      parts,
      fc.constantFrom(998n, 999n, 1999n, 2401n),
      fc.infiniteStream(fc.nat()),
      (taken, minor, order) => {
        const bonus = findBonus(steps, usd(minor), '7.1');
        const reports = taken.flatMap(({ cents, grown, isReturned }, at) => {
          const of = (more: bigint, state: 'taken' | 'returned') =>
            reversal(`dp_${at}`, { kind: 'dispute', state, ...usd(cents + more) });
          return [of(0n, 'taken'), of(grown, 'taken'), ...(isReturned ? [of(grown, 'returned')] : [])];
        });
        const facts = [{ ...paid, paid: usd(minor), bonus }, ...reports].toSorted(
          () => ((order.next().value ?? 0) % 3) - 1,
        );
        const { payment } = play(facts);
        const grants = payment ? grantsOf(payment) : [];
        const amounts = grants.filter(({ grant_id }) => grant_id.endsWith('-bonus'));
        const whole = bonusOf(steps, minor * 71_000_000n);
        const kept = Object.values(payment?.reversals ?? {}).filter(({ state }) => state === 'taken');
        const wanted = kept.reduce((sum, each) => sum - bonusOfPart(whole, each.minor, minor), whole);
        expect(amounts.reduce((sum, { amount }) => sum + amount, 0n)).toBe(wanted);
        expect(amounts.every(({ reason }) => reason?.startsWith('bonus of the '))).toBe(true);
      },
    ),
  );
});

test('an operator who assigns a parked payment credits the bonus that applied when it was paid', () => {
  const { payment: parked } = play([{ ...paid, bonus: '5', account: undefined, problem: 'unknown' }]);
  if (!parked) throw new Error('not parked');
  const { rate, bonus } = parked;
  expect(grantsOf(assignPayment(parked, { account: 'beta', rate, bonus }))).toMatchObject([
    { account: 'beta', grant_id: 'pi_1', amount: 71_000_000_000n },
    {
      account: 'beta',
      grant_id: 'pi_1-bonus',
      amount: 5_000_000_000n,
      reason: 'bonus of the payment of 10 usd',
    },
  ]);
});
