import { describe, expect, test } from 'vitest';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { dispute, reference, refund, session, StripeRig } from '../../../support/stripe-rig.ts';

const completed = 'checkout.session.completed';

describe('a paid checkout', () => {
  test.each<[string, object, string, string]>([
    ['two decimals', { currency: 'usd', minor: 1000n }, 'usd', '71'],
    ['none', { currency: 'jpy', minor: 5001n }, 'jpy', '240.048'],
    ['three', { currency: 'kwd', minor: 1230n }, 'kwd', '28.44185088'],
    ['two, one for one', { currency: 'cny', minor: 1n }, 'cny', '0.01'],
  ])('is credited exactly in a currency with %s decimals', async (_name, content, currency, yuan) => {
    const rig = new StripeRig();
    const { minor } = content as { minor: bigint };
    const paid = { amount_total: Number(minor), currency, client_reference_id: reference(content) };
    expect(await rig.send(completed, session(paid))).toBe(200);
    expect(rig.granted).toEqual([`acme pi_1 ${yuan}`]);
    expect(rig.counted).toEqual([]);
  });

  test.each<[string, object, string]>([
    ['without a reference', { client_reference_id: null }, 'no reference of this relay'],
    ['with the reference of another shop', { client_reference_id: 'order-1' }, 'no reference of this relay'],
    [
      'with an account typed by hand',
      { client_reference_id: reference({}, 'a guess') },
      'not signed by this relay',
    ],
    [
      'whose account was changed after signing',
      { client_reference_id: reference().replace(/acme$/, 'beta') },
      'not signed by this relay',
    ],
    ['of less than the reference names', { amount_total: 100 }, 'differs from the amount in the reference'],
    [
      'in another currency than the reference names',
      { currency: 'cny' },
      'differs from the amount in the reference',
    ],
    ['for a deleted account', { client_reference_id: reference({ account: 'gone' }) }, 'does not exist'],
    [
      'in a currency without a rate',
      { currency: 'eur', client_reference_id: reference({ currency: 'eur' }) },
      'no rate',
    ],
    ['of a subscription', { mode: 'subscription', payment_intent: null }, 'not a one-time payment'],
  ])(
    'is parked for an operator with an alarm and credited to nobody: %s',
    async (_name, changes, problem) => {
      const rig = new StripeRig();
      expect(await rig.send(completed, session({ ...changes }))).toBe(200);
      expect(rig.granted).toEqual([]);
      const [payment] = rig.store.payments.values();
      expect(payment).toMatchObject({ state: 'parked', problem: expect.stringContaining(problem) });
      expect(rig.counted).toEqual(['PaymentParked']);
      expect(rig.events).toEqual([
        { name: 'payment_parked', fields: expect.objectContaining({ problem: payment?.problem }) },
      ]);
    },
  );

  test('gets the bonus steps in force when it is reported, and a refund takes back its share later', async () => {
    const rig = new StripeRig();
    rig.bonus = [{ pay: 71, get: 78.1 }];
    await rig.send(completed, session());
    rig.bonus = undefined;
    await rig.send(completed, session());
    await rig.send('refund.created', refund());
    await rig.send('refund.failed', refund({ status: 'failed' }));
    expect(rig.granted).toEqual([
      'acme pi_1 71',
      'acme pi_1-bonus 7.1',
      'acme re_1 -28.4',
      'acme re_1-bonus -2.84',
      'acme re_1-returned 28.4',
      'acme re_1-returned-bonus 2.84',
    ]);
  });

  test('that is parked is credited when Stripe sends it again and the cause is gone', async () => {
    const rig = new StripeRig();
    rig.store.accounts.delete('acme');
    await rig.send(completed, session());
    await rig.send('refund.created', refund());
    expect(rig.granted).toEqual([]);
    rig.store.accounts.add('acme');
    await rig.send(completed, session());
    await rig.send(completed, session());
    expect(rig.granted).toEqual(['acme pi_1 71', 'acme re_1 -28.4']);
  });

  test('of another shop is ignored if the setting says so', async () => {
    const rig = new StripeRig();
    rig.settings = rig.settings && { ...rig.settings, unsigned: 'ignore' };
    expect(await rig.send(completed, session({ client_reference_id: null }))).toBe(200);
    expect(rig.store.payments.size).toBe(0);
    await rig.send(completed, session({ client_reference_id: reference({}, 'a guess') }));
    expect(rig.store.payments.get('pi_1')).toMatchObject({ state: 'parked' });
  });

  test('of a connected account is ignored', async () => {
    const rig = new StripeRig();
    expect(await rig.send(completed, session(), { account: 'acct_other' })).toBe(200);
    expect(rig.store.payments.size).toBe(0);
  });

  test('in test mode is ignored by a live relay, and real money is parked in test mode', async () => {
    const rig = new StripeRig();
    expect(await rig.send(completed, session(), { livemode: false })).toBe(200);
    expect(rig.store.payments.size).toBe(0);
    rig.settings = rig.settings && { ...rig.settings, live: false };
    await rig.send(completed, session({ payment_intent: 'pi_test' }), { livemode: false });
    expect(rig.granted).toEqual(['acme pi_test 71']);
    await rig.send(completed, session());
    expect(rig.store.payments.get('pi_1')).toMatchObject({ state: 'parked', live: true });
  });

  test.each([
    { amount_total: '1000' },
    { amount_total: 10.5 },
    { amount_total: -1000 },
    { currency: 'USD' },
    { payment_intent: 'pi 1#x' },
    { payment_intent: undefined },
  ])('of an undocumented form is rejected, so that Stripe keeps it: %o', async (changes) => {
    const rig = new StripeRig();
    expect(await rig.send(completed, session(changes))).toBe(400);
    expect(rig.store.payments.size).toBe(0);
  });
});

describe('refunds and disputes', () => {
  test('debit at the rate of the payment, once each, in any order', async () => {
    const rig = new StripeRig();
    await rig.send('refund.created', refund());
    await rig.send('charge.refunded', { id: 'ch_1', refunds: { data: [refund()] } });
    expect(rig.granted).toEqual([]);
    await rig.send(completed, session());
    rig.settings = rig.settings && { ...rig.settings, rates: { usd: '9' } };
    for (const type of ['refund.updated', 'charge.refund.updated']) await rig.send(type, refund());
    await rig.send('refund.created', refund({ id: 're_2', amount: 600, status: 'pending' }));
    expect(rig.granted).toEqual(['acme pi_1 71', 'acme re_1 -28.4', 'acme re_2 -42.6']);
  });

  test('a dispute debits when it opens and credits when it is won; an inquiry does neither', async () => {
    const rig = new StripeRig();
    await rig.send(completed, session());
    await rig.send('charge.dispute.created', dispute({ id: 'dp_0', status: 'warning_needs_response' }));
    await rig.send('charge.dispute.created', dispute());
    await rig.send('charge.dispute.funds_withdrawn', dispute());
    await rig.send('charge.dispute.closed', dispute({ status: 'won' }));
    await rig.send('charge.dispute.created', dispute({ id: 'dp_2', amount: 300 }));
    await rig.send('charge.dispute.closed', dispute({ id: 'dp_2', amount: 300, status: 'lost' }));
    expect(rig.granted).toEqual([
      'acme dp_1 -71',
      'acme dp_1-returned 71',
      'acme dp_2 -21.3',
      'acme pi_1 71',
    ]);
  });

  test('above the payment, alone or together, are debited and reported', async () => {
    const rig = new StripeRig();
    await rig.send(completed, session());
    await rig.send('refund.created', refund({ id: 're_1', amount: 600 }));
    expect(rig.counted).toEqual([]);
    await rig.send('refund.created', refund({ id: 're_2', amount: 600 }));
    expect(rig.counted).toEqual(['PaymentParked']);
    expect(rig.granted).toEqual(['acme pi_1 71', 'acme re_1 -42.6', 'acme re_2 -42.6']);
    await rig.send('refund.failed', refund({ id: 're_2', amount: 600, status: 'failed' }));
    await rig.send('refund.updated', refund({ id: 're_1', amount: 600, status: 'succeeded' }));
    expect(rig.counted).toEqual(['PaymentParked']);
    await rig.send('charge.dispute.created', dispute({ amount: 1200 }));
    expect(rig.counted).toEqual(['PaymentParked', 'PaymentParked']);
  });

  test('in another currency than the payment are reported, not converted', async () => {
    const rig = new StripeRig();
    await rig.send(completed, session());
    await rig.send('charge.dispute.created', dispute({ currency: 'eur' }));
    expect(rig.granted).toEqual(['acme pi_1 71']);
    expect(rig.counted).toEqual(['PaymentParked']);
  });
});

describe('when the store', () => {
  const down = async () => {
    throw new StoreUnavailable('down');
  };

  test('does not answer, the relay answers 503 and Stripe sends the event again', async () => {
    const rig = new StripeRig();
    rig.store.disturb = down;
    expect(await rig.send(completed, session())).toBe(503);
    expect(await rig.send('refund.created', refund())).toBe(503);
    rig.store.disturb = undefined;
    expect(await rig.send(completed, session())).toBe(200);
    expect(rig.granted).toEqual(['acme pi_1 71']);
  });

  test('loses the reply to a write, the payment is credited once, or parked and reported', async () => {
    for (const account of ['acme', 'gone']) {
      const rig = new StripeRig();
      let losses = 1;
      rig.store.disturb = async (moment) => {
        if (moment === 'after' && losses-- > 0) await down();
      };
      expect(await rig.send(completed, session({ client_reference_id: reference({ account }) }))).toBe(200);
      expect(rig.granted).toEqual(account === 'acme' ? ['acme pi_1 71'] : []);
      expect(rig.counted).toEqual(account === 'acme' ? [] : ['PaymentParked']);
    }
  });

  test('has a manual grant with the same id, that grant counts and an operator is alerted', async () => {
    const rig = new StripeRig();
    rig.store.grants.set('acme pi_1', { account: 'acme', grant_id: 'pi_1', amount: 5_000_000_000n });
    await rig.send('refund.created', refund());
    expect(await rig.send(completed, session())).toBe(200);
    expect(rig.granted).toEqual(['acme pi_1 5', 'acme re_1 -28.4']);
    expect(rig.counted).toEqual(['PaymentParked']);
  });
});

const intent = {
  id: 'pi_1',
  amount_received: 1000,
  currency: 'usd',
  customer: 'cus_1',
  payment_method: 'pm_1',
};
const storing = { ...intent, metadata: { relay_reference: reference() } };

describe('the payment that stores a card', () => {
  const eur = reference({ currency: 'eur' });
  const events: Record<'checkout' | 'intent', [string, Record<string, unknown>]> = {
    checkout: [completed, session({ currency: 'eur', client_reference_id: eur })],
    intent: ['payment_intent.succeeded', { ...intent, currency: 'eur', metadata: { relay_reference: eur } }],
  };
  const wanted = { below: 500, amount: 1000, monthly: 5000, nonce: '0123456789abcdef' };

  test.each<[(keyof typeof events)[], (keyof typeof events)[]]>([
    [['checkout', 'intent'], ['checkout']],
    [['checkout', 'intent'], ['intent']],
    [['intent', 'checkout'], ['checkout']],
    [
      ['intent', 'intent'],
      ['checkout', 'checkout'],
    ],
    [['checkout'], ['intent']],
  ])('stores it when %j came before the rate and %j comes after', async (before, after) => {
    const rig = new StripeRig();
    rig.topUps.kept.set('acme', { account: 'acme', version: 1, month: '', charged: 0, wanted });
    for (const name of before) expect(await rig.send(...events[name])).toBe(200);
    expect(rig.topUps.kept.get('acme')).not.toHaveProperty('card');
    rig.settings!.rates['eur'] = '7';
    for (const name of after) expect(await rig.send(...events[name])).toBe(200);
    expect(rig.granted).toEqual(['acme pi_1 70']);
    const card = { customer: 'cus_1', method: 'pm_1' };
    expect(rig.topUps.kept.get('acme')).toMatchObject({ card, pending: { payment: 'pi_1' }, version: 2 });
  });

  test('is not parked by an environment that has not read the rate of its currency yet', async () => {
    const rig = new StripeRig();
    rig.olderSettings = { ...rig.settings!, rates: { usd: '7.1' } };
    rig.settings!.rates['eur'] = '7';
    expect(await rig.send(...events.checkout)).toBe(200);
    expect(rig.granted).toEqual(['acme pi_1 70']);
  });

  const refunding = (rig: StripeRig) => rig.send('refund.created', refund());

  test.each([1, 2])('stores no card if a refund is recorded in between, before access %i', async (access) => {
    const rig = new StripeRig();
    rig.topUps.kept.set('acme', { account: 'acme', version: 1, month: '', charged: 0, wanted });
    let accesses = 0;
    rig.topUps.disturb = async () => {
      accesses += 1;
      if (accesses === access) expect(await refunding(rig)).toBe(200);
    };
    expect(await rig.send('payment_intent.succeeded', storing)).toBe(200);
    expect(rig.granted).toEqual(['acme pi_1 71', 'acme re_1 -28.4']);
    expect(rig.topUps.kept.get('acme')).toMatchObject({ off: 'refunded' });
    expect(rig.topUps.kept.get('acme')).not.toHaveProperty('card');
  });

  test('stores no card if a refund that found no card is recorded afterwards', async () => {
    const rig = new StripeRig();
    rig.topUps.kept.set('acme', { account: 'acme', version: 1, month: '', charged: 0, wanted });
    expect(await rig.send(completed, session())).toBe(200);
    const { reads } = rig.store;
    rig.store.disturb = async () => {
      if (rig.store.reads !== reads + 2) return;
      rig.store.disturb = undefined;
      expect(await rig.send('payment_intent.succeeded', storing)).toBe(200);
      expect(rig.topUps.kept.get('acme')).toHaveProperty('card');
    };
    expect(await refunding(rig)).toBe(200);
    expect(rig.topUps.kept.get('acme')).toMatchObject({ off: 'refunded' });
    expect(rig.topUps.kept.get('acme')).not.toHaveProperty('card');
  });

  test('a dispute that is won later leaves top-ups on that the customer asked for again with the same card', async () => {
    const rig = new StripeRig();
    rig.topUps.kept.set('acme', { account: 'acme', version: 1, month: '', charged: 0, wanted });
    await rig.send('payment_intent.succeeded', storing);
    await rig.send('charge.dispute.created', dispute());
    expect(rig.topUps.kept.get('acme')).toMatchObject({ off: 'disputed' });
    rig.topUps.kept.set('acme', { account: 'acme', version: 9, month: '', charged: 0, wanted });
    await rig.send('payment_intent.succeeded', { ...storing, id: 'pi_2' });
    await rig.send('charge.dispute.closed', dispute({ status: 'won' }));
    expect(rig.topUps.kept.get('acme')).toMatchObject({ card: { method: 'pm_1' } });
  });

  test('keeps the account and the card of one event if others contain neither', async () => {
    const rig = new StripeRig();
    const unsigned = session({ currency: 'eur', client_reference_id: null });
    await rig.send(completed, unsigned);
    expect(rig.store.payments.get('pi_1')).toMatchObject({ account: undefined });
    for (let sent = 0; sent < 2; sent += 1) await rig.send(...events.intent);
    await rig.send(completed, unsigned);
    const problem = expect.stringContaining('no rate');
    const card = { customer: 'cus_1', method: 'pm_1' };
    expect(rig.store.payments.get('pi_1')).toMatchObject({ account: 'acme', card, problem, version: 2 });
  });

  test('keeps the rate and the account of the first report when a later one brings the card', async () => {
    const rig = new StripeRig();
    rig.store.accounts.delete('acme');
    await rig.send(completed, session());
    rig.settings!.rates['usd'] = '9';
    const other = reference({ account: 'other' });
    await rig.send('payment_intent.succeeded', { ...storing, metadata: { relay_reference: other } });
    const card = { customer: 'cus_1', method: 'pm_1' };
    expect(rig.store.payments.get('pi_1')).toMatchObject({ account: 'acme', rate: '7.1', card, version: 2 });
  });

  test.each([
    ['a refund', 'refund.created', refund()],
    ['a dispute', 'charge.dispute.created', dispute()],
  ])('enables no automatic top-ups if %s was reported first', async (_name, type, object) => {
    for (const isCheckoutFirst of [true, false]) {
      const rig = new StripeRig();
      const terms = { below: 500, amount: 1000, monthly: 5000 };
      const wanted = { ...terms, nonce: '0123456789abcdef' };
      rig.topUps.kept.set('acme', { account: 'acme', version: 1, month: '', charged: 0, wanted });
      if (isCheckoutFirst) await rig.send(completed, session());
      await rig.send(type, object);
      for (let sent = 0; sent < 2; sent += 1) await rig.send('payment_intent.succeeded', storing);
      expect(rig.topUps.kept.get('acme')).not.toHaveProperty('card');
      expect(rig.granted).toHaveLength(2);
    }
  });
});
