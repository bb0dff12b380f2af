import { expect, it } from 'vitest';
import { nodeHmac } from '../../../../shared/adapters/system/node-ports.ts';
import { addSignature, formatReferenceBody, formatTextToSign } from '../../../../shared/billing/payments.ts';
import { SeededRandom } from '../../../simulation/seeded-random.ts';
import { dispute, refund, session, StripeRig } from '../../../support/stripe-rig.ts';

/** Plan months paid through Stripe, through the function itself. */
function planReference(level: number, minor = 3_000n, nonce = '0123456789abcdef'): string {
  const body = formatReferenceBody({ account: 'acme', currency: 'usd', minor, nonce });
  return addSignature(body, nodeHmac.sign('link secret', formatTextToSign(body, level)), level);
}

const paidFor = (level: number, payment_intent = 'pi_1', changes: object = {}) =>
  session({
    payment_intent,
    amount_total: 3_000,
    client_reference_id: planReference(level),
    ...changes,
  });

const completed = 'checkout.session.completed';
const dayMs = 24 * 3_600_000;

/** `level from until`, in UTC days. */
function planOf(rig: StripeRig): string {
  const plan = rig.store.plans.get('acme');
  const day = (ms = 0): string => new Date(ms).toISOString().slice(0, 10);
  return plan
    ? `${plan.level} ${day(plan.since)} ${plan.until === undefined ? '' : day(plan.until)}`
    : 'none';
}

it('a paid month is set once for any number of parallel reports, and credits no balance', async () => {
  const rig = new StripeRig();
  const reports = Array.from({ length: 8 }, () => rig.send(completed, paidFor(2)));
  expect(new Set(await Promise.all(reports))).toEqual(new Set([200]));
  expect(planOf(rig)).toBe('2 2026-11-21 2026-12-21');
  expect(rig.granted).toEqual([]);
});

it('parallel payments buy a month each, and a renewal follows the paid time', async () => {
  const rig = new StripeRig();
  const payments = ['pi_1', 'pi_2', 'pi_3'].map((id) => rig.send(completed, paidFor(2, id)));
  expect(new Set(await Promise.all(payments))).toEqual(new Set([200]));
  expect(planOf(rig)).toBe('2 2026-11-21 2027-02-21');
});

it('the last day of a month does not shorten later months', async () => {
  const rig = new StripeRig();
  rig.nowMs = Date.UTC(2027, 0, 31);
  const untils: string[] = [];
  for (const id of ['pi_1', 'pi_2', 'pi_3']) {
    await rig.send(completed, paidFor(1, id));
    untils.push(planOf(rig).slice(13));
  }
  expect(untils).toEqual(['2027-02-28', '2027-03-31', '2027-04-30']);
});

it('a higher level starts at once; a lower one, or a plan without an end, parks the payment', async () => {
  const rig = new StripeRig();
  await rig.send(completed, paidFor(1));
  rig.nowMs += 10 * dayMs;
  await rig.send(completed, paidFor(3, 'pi_2'));
  expect(planOf(rig)).toBe('3 2026-12-01 2027-01-01');
  await rig.send(completed, paidFor(1, 'pi_3'));
  rig.store.plans.set('acme', { level: 3, since: 0 });
  await rig.send(completed, paidFor(3, 'pi_4'));
  expect(planOf(rig)).toBe('3 1970-01-01 ');
  expect(['pi_3', 'pi_4'].map((id) => rig.store.payments.get(id)?.problem)).toEqual([
    'the account has a higher plan',
    'the account has a plan without an end',
  ]);
  expect([rig.granted, rig.counted]).toEqual([[], ['PaymentParked', 'PaymentParked']]);
});

it('a full refund or dispute ends only its month, a partial one ends nothing, once each', async () => {
  const rig = new StripeRig();
  for (const id of ['pi_1', 'pi_2']) await rig.send(completed, paidFor(2, id));
  rig.nowMs += dayMs;
  await rig.send('refund.created', refund({ id: 're_1', amount: 1_000 }));
  expect(planOf(rig)).toBe('2 2026-11-21 2027-01-21');
  for (let sent = 0; sent < 3; sent += 1)
    await rig.send('refund.created', refund({ id: 're_2', amount: 2_000 }));
  expect(planOf(rig)).toBe('2 2026-11-21 2026-12-22');
  await rig.send('charge.dispute.created', dispute({ payment_intent: 'pi_2', amount: 3_000 }));
  expect(planOf(rig)).toBe('2 2026-11-21 2026-11-22');
  expect(rig.granted).toEqual([]);
});

it('a refund leaves the higher plan that followed, and one before its payment cancels the month', async () => {
  const rig = new StripeRig();
  await rig.send(completed, paidFor(1));
  await rig.send(completed, paidFor(2, 'pi_2'));
  await rig.send('refund.created', refund({ amount: 3_000 }));
  expect(planOf(rig)).toBe('2 2026-11-21 2026-12-21');
  await rig.send('refund.created', refund({ id: 're_3', payment_intent: 'pi_3', amount: 3_000 }));
  await rig.send(completed, paidFor(2, 'pi_3'));
  expect(planOf(rig)).toBe('2 2026-11-21 2026-12-21');
  expect(rig.granted).toEqual([]);
});

it('a month follows a plan that begins later, by an operator’s edit or a fast clock', async () => {
  const rig = new StripeRig();
  rig.store.plans.set('acme', { level: 2, since: rig.nowMs + 9, until: Date.UTC(2026, 11, 21) });
  await rig.send(completed, paidFor(2));
  expect(planOf(rig)).toBe('2 2026-11-21 2027-01-21');
  await rig.send(completed, paidFor(1, 'pi_2'));
  expect([planOf(rig), rig.store.payments.get('pi_2')?.state]).toEqual(['2 2026-11-21 2027-01-21', 'parked']);
});

it('a refund of a past month does not shorten the month that was bought later', async () => {
  const rig = new StripeRig();
  await rig.send(completed, paidFor(2));
  rig.nowMs += 40 * dayMs;
  await rig.send(completed, paidFor(2, 'pi_2'));
  await rig.send('refund.created', refund({ amount: 3_000 }));
  expect(planOf(rig)).toBe('2 2026-12-31 2027-01-31');
});

it.each([
  ['less was paid', () => ({ amount_total: 100 })],
  ['the level was edited', () => ({ client_reference_id: planReference(1).replace('p1-', 'p3-') })],
  ['the level was removed', () => ({ client_reference_id: planReference(1).replace('p1-', '') })],
])('if %s, no plan is set and nothing is credited', async (_, changes) => {
  const rig = new StripeRig();
  await rig.send(completed, paidFor(1, 'pi_1', changes()));
  expect([planOf(rig), rig.granted, rig.store.payments.get('pi_1')?.state]).toEqual(['none', [], 'parked']);
});

it('the remaining months are those bought minus those refunded, for repeated events in any order', async () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const random = new SeededRandom(seed);
    const rig = new StripeRig();
    rig.random = () => random.next();
    rig.store.disturb = async () => {
      for (let turns = random.integer(0, 3); turns > 0; turns -= 1) await Promise.resolve();
    };
    const events: [string, object][] = [];
    const bought = random.integer(1, 5);
    const refunded = random.integer(0, bought);
    for (let at = 0; at < bought; at += 1) {
      const payment_intent = `pi_${at}`;
      events.push([completed, paidFor(2, payment_intent)]);
      if (at < refunded)
        events.push(['refund.created', refund({ id: `re_${at}`, payment_intent, amount: 3_000 })]);
    }
    const sent = [...events, ...events].toSorted(() => random.next() - 0.5);
    await Promise.all(sent.map(([type, object]) => rig.send(type, { ...object })));
    const months = bought - refunded;
    const until = rig.store.plans.get('acme')?.until ?? rig.nowMs;
    expect([seed, Math.round((until - rig.nowMs) / dayMs / 30.4)]).toEqual([seed, months]);
  }
});
