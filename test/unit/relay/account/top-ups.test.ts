import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { defaultSettings } from '../../../../shared/config/settings.ts';
import { createAutoTopUpStore } from '../../../../shared/adapters/dynamodb/alerts/auto-top-up-store.ts';
import { storeCard as storeCardOf } from '../../../../shared/billing/auto-top-up.ts';
import { session, StripeRig } from '../../../support/stripe-rig.ts';
import { ManagedRig, type ManagedAnswer } from './managed-rig.ts';

let rig: ManagedRig;
let key = '';
let account = '';
beforeAll(async () => {
  rig = await ManagedRig.start();
});
afterAll(async () => rig.stop());
beforeEach(async () => {
  ({ key, account } = await rig.maker());
  rig.settings = { ...defaultSettings };
  rig.payments();
  rig.stripe.asked.length = 0;
  rig.sleep = undefined;
  rig.secrets.set('ssm:/relay/relay/stripe', 'sk_test_1');
  rig.stripe.answer = (form) => ({ session: opened(form) });
});

const url = 'https://checkout.stripe.com/c/pay/cs_test_1';
/** The fields of Stripe's answer that the relay reads. */
const opened = (form: URLSearchParams, changes: object = {}) => ({
  id: 'cs_test_1',
  object: 'checkout.session',
  livemode: false,
  client_reference_id: form.get('client_reference_id'),
  url,
  ...changes,
});
const said = ({ status, body: { error } }: ManagedAnswer): unknown[] => [
  status,
  error['code'],
  error['param'],
];

describe('a checkout session', () => {
  it('carries an account reference, returns to the relay, and only the webhook grants the payment', async () => {
    const answer = await rig.topUp(key, { amount: 100 });
    expect([answer.status, answer.body]).toEqual([200, { url }]);
    const [{ headers, form, path } = { headers: {}, form: new URLSearchParams(), path: '' }] =
      rig.stripe.asked;
    expect(path).toBe('/v1/checkout/sessions');
    expect(headers).toMatchObject({
      authorization: 'Bearer sk_test_1',
      'idempotency-key': expect.stringMatching(/^relay-request-\d+$/) as string,
    });
    const { client_reference_id: reference, ...fields } = Object.fromEntries(form);
    expect(fields).toEqual({
      mode: 'payment',
      success_url: 'https://relay.test/account?top_up=done',
      cancel_url: 'https://relay.test/account?top_up=cancelled',
      'adaptive_pricing[enabled]': 'false',
      'line_items[0][quantity]': '1',
      'line_items[0][price_data][currency]': 'cny',
      'line_items[0][price_data][unit_amount]': '10000',
      'line_items[0][price_data][product_data][name]': 'Balance',
    });
    const hook = new StripeRig();
    hook.store.accounts.add(account);
    const paid = { client_reference_id: reference, amount_total: 10_000, currency: 'cny' };
    expect(await hook.send('checkout.session.completed', session(paid))).toBe(200);
    expect(hook.granted).toEqual([`${account} pi_1 100`]);
    // A reference that was reused for a smaller payment grants nothing.
    const cheap = session({ ...paid, amount_total: 1, payment_intent: 'pi_2' });
    await hook.send('checkout.session.completed', cheap);
    expect(hook.granted).toHaveLength(1);
    expect(await rig.rows('grants')).toEqual([]);
  });

  it.each([
    ['usd', '1409'],
    ['jpy', '2084'],
    ['kwd', '4330'],
  ])('in %s asks for the smallest amount that grants the requested one', async (currency, unitAmount) => {
    rig.payments({
      checkout: {
        secretKey: 'ssm:/relay/relay/stripe',
        currency,
        endpoint: rig.endpoint,
        autoTopUp: true,
        plans: [],
      },
    });
    expect((await rig.topUp(key, { amount: 100.01 })).status).toBe(200);
    expect(rig.stripe.asked[0]?.form.get('line_items[0][price_data][unit_amount]')).toBe(unitAmount);
  });

  it('is requested again with the same idempotency key when Stripe is busy', async () => {
    let calls = 0;
    rig.stripe.answer = (form) => {
      calls += 1;
      return calls === 1 ? { status: 503, session: 'no' } : { session: opened(form) };
    };
    expect((await rig.topUp(key, { amount: 5 })).body).toEqual({ url });
    const [first, second, ...more] = rig.stripe.asked;
    expect(more).toEqual([]);
    expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key']);
    expect(second?.form.toString()).toBe(first?.form.toString());
  });

  it.each([0, -5, 4.99, 50_000.01, 1e12, 5.001, 1e-300, null, '10', [10], {}, true])(
    'of %j yuan is rejected with 400 before Stripe is called',
    async (amount) => {
      expect(said(await rig.topUp(key, { amount }))).toEqual([400, 'invalid_value', 'amount']);
      expect(rig.stripe.asked).toEqual([]);
    },
  );

  it('cannot be redirected by the request body', async () => {
    const answer = await rig.topUp(key, { amount: 10, success_url: 'https://evil.example' });
    expect(said(answer)).toEqual([400, 'unknown_parameter', 'success_url']);
  });
});

describe('when Stripe', () => {
  type Answer = ReturnType<typeof rig.stripe.answer>;
  it.each<[string, (form: URLSearchParams) => Answer, number, string]>([
    [
      'refuses the key',
      () => ({ status: 401, session: { error: { message: 'No such key: sk_test_1' } } }),
      502,
      'stripe_401',
    ],
    [
      'refuses the amount',
      () => ({ status: 400, session: { error: { message: 'secret words' } } }),
      502,
      'stripe_400',
    ],
    ['has too many requests', () => ({ status: 429, session: '{}' }), 503, 'stripe_429'],
    ['fails', () => ({ status: 500, session: '<html>secret words</html>' }), 503, 'stripe_500'],
    ['redirects', () => ({ status: 302, session: '' }), 502, 'stripe_302'],
    ['answers without JSON', () => ({ session: 'secret words' }), 502, 'stripe_other_session'],
    ['sends an endless answer', () => ({ session: 'x'.repeat(400_000) }), 503, 'stripe_reply'],
    [
      'answers with a live session',
      (form) => ({ session: opened(form, { livemode: true }) }),
      502,
      'stripe_other_session',
    ],
    [
      'answers with another account’s session',
      (form) => ({ session: opened(form, { client_reference_id: 'x' }) }),
      502,
      'stripe_other_session',
    ],
    [
      'sends a script as the address',
      (form) => ({ session: opened(form, { url: 'javascript:alert(1)' }) }),
      502,
      'stripe_url',
    ],
    [
      'sends an address without https',
      (form) => ({ session: opened(form, { url: 'http://a.example' }) }),
      502,
      'stripe_url',
    ],
    ['sends no address', (form) => ({ session: opened(form, { url: null }) }), 502, 'stripe_url'],
  ])('%s, the answer holds no address and no text from Stripe', async (_, answer, status, reason) => {
    rig.stripe.answer = answer;
    const got = await rig.topUp(key, { amount: 10 });
    expect(said(got)).toEqual([status, status === 502 ? 'top_up_failed' : 'unavailable', null]);
    expect(JSON.stringify([got, rig.logged.at(-1)])).not.toMatch(/secret words|sk_test_1|evil/);
    expect(rig.logged.at(-1)).toMatchObject({ endpoint: 'top_ups', reason });
  });

  it('does not answer within ten seconds, the customer is asked to try again', async () => {
    rig.stripe.answer = () => ({ never: true });
    const waits: number[] = [];
    rig.sleep = async (ms) => void waits.push(ms);
    const answer = await rig.topUp(key, { amount: 10 });
    expect([said(answer), waits, answer.headers['retry-after']]).toEqual([
      [503, 'unavailable', null],
      [10_000],
      '5',
    ]);
  });

  it('has an unreadable key, the top-up fails without a call to Stripe', async () => {
    rig.secrets.delete('ssm:/relay/relay/stripe');
    expect(said(await rig.topUp(key, { amount: 10 }))).toEqual([502, 'top_up_failed', null]);
    expect(rig.stripe.asked).toEqual([]);
  });
});

describe('without checkout sessions', () => {
  it('the customer gets the operator’s own link with the account in it', async () => {
    rig.settings = { ...defaultSettings, topUpUrl: 'https://shop.example/pay?for={account}&again={account}' };
    const odd = await rig.maker({ account: "a&b=c/?#%'$&" });
    const { body } = await rig.topUp(odd.key, { amount: 10 });
    const name = encodeURIComponent("a&b=c/?#%'$&");
    expect(body).toEqual({ url: `https://shop.example/pay?for=${name}&again=${name}` });
    expect((await rig.list(key)).body).toMatchObject({ top_up: 'link' });
  });

  it('and without a link, or without an account row, no top-up is offered', async () => {
    expect((await rig.list(key)).body).toMatchObject({ top_up: 'checkout' });
    const without = await rig.maker({ account: 'without-a-row' });
    expect(said(await rig.topUp(without.key, { amount: 10 }))).toEqual([404, 'top_up_not_offered', null]);
    rig.settings = { ...defaultSettings };
    expect(said(await rig.topUp(key, { amount: 10 }))).toEqual([404, 'top_up_not_offered', null]);
    expect(rig.stripe.asked).toEqual([]);
  });
});

describe('a card for automatic top-ups', () => {
  const auto = { below: 20, monthly_limit: 200 };
  const ask = (body: object) => rig.topUp(key, body);
  const state = async () => (await rig.send('GET', '/v1/account/top-ups', key)).body['auto'];
  /** Writes the card as the function `payments` does after the session was paid. */
  const storeCard = async () => {
    const store = createAutoTopUpStore(rig.tables, 'relay');
    await store.change(account, (before) => {
      if (!before?.wanted) return undefined;
      const card = { customer: 'cus_1', method: 'pm_1' };
      return storeCardOf(before, { nonce: before.wanted.nonce, card, payment: 'pi_1', nowMs: rig.nowMs });
    });
  };

  it('is stored by a first payment whose session names the terms, and shown without its ids', async () => {
    expect((await ask({ amount: 50, auto })).body).toEqual({ url });
    const form = Object.fromEntries(rig.stripe.asked[0]?.form ?? []);
    expect(form).toMatchObject({
      mode: 'payment',
      customer_creation: 'always',
      'payment_intent_data[setup_future_usage]': 'off_session',
      'line_items[0][price_data][unit_amount]': '5000',
    });
    expect(form['payment_intent_data[metadata][relay_reference]']).toBe(form['client_reference_id']);
    for (const part of ['¥50', '¥20', '¥200', account])
      expect(form['custom_text[submit][message]']).toContain(part);
    expect(await state()).toBeNull();
    await storeCard();
    const shown = await state();
    expect(shown).toMatchObject({ on: true, below: 20, amount: 50, monthly_limit: 200 });
    expect(JSON.stringify(shown)).not.toMatch(/cus_|pm_|pi_/);
  });

  it('is charged for lower terms at once, for higher ones after a new payment, and never once it is removed', async () => {
    await ask({ amount: 50, auto });
    await storeCard();
    rig.stripe.asked.length = 0;
    const less = { amount: 40, auto: { below: 10, monthly_limit: 100 } };
    expect((await ask(less)).body).toMatchObject({ auto: { on: true, amount: 40, monthly_limit: 100 } });
    expect(rig.stripe.asked).toEqual([]);
    expect((await ask({ amount: 40, auto: { below: 10, monthly_limit: 101 } })).body).toEqual({ url });
    expect(await state()).toMatchObject({ monthly_limit: 100 });
    expect((await ask({ auto: null })).body).toEqual({ auto: null });
    expect((await rig.rows('runtime')).find(({ id }) => id === `auto-top-up#${account}`)).not.toHaveProperty(
      'card',
    );
  });

  it.each([
    [{ amount: 50, auto: { below: 50.01, monthly_limit: 200 } }, 'below'],
    [{ amount: 50, auto: { below: 0, monthly_limit: 200 } }, 'below'],
    [{ amount: 50, auto: { below: 20, monthly_limit: 49 } }, 'monthly_limit'],
    [{ amount: 50, auto: { below: 20 } }, 'monthly_limit'],
    [{ amount: 50, auto: true }, 'auto'],
    [{ amount: 50, auto: { ...auto, card: 'pm_of_another' } }, 'card'],
    [{ auto }, 'amount'],
  ])('rejects %j with 400 before Stripe is called', async (body, param) => {
    const answer = await ask(body);
    expect([answer.status, answer.body.error['param']]).toEqual([400, param]);
    expect(rig.stripe.asked).toEqual([]);
  });

  it('is offered only if the operator enables it for both the relay and the account', async () => {
    await rig.put('accounts', { account, auto_top_up: false });
    expect(said(await ask({ amount: 50, auto }))).toEqual([404, 'top_up_not_offered', null]);
    await rig.put('accounts', { account });
    const checkout = {
      secretKey: 'ssm:/relay/relay/stripe',
      currency: 'cny',
      endpoint: rig.endpoint,
      autoTopUp: false,
      plans: [],
    };
    rig.payments({ checkout });
    expect(said(await ask({ amount: 50, auto }))).toEqual([404, 'top_up_not_offered', null]);
    expect((await rig.send('GET', '/v1/account/top-ups', key)).body).toMatchObject({ auto_offered: false });
    const plain = await rig.maker({ manage: false });
    expect((await rig.topUp(plain.key, { auto: null })).status).toBe(403);
  });
});

describe('one month of a plan', () => {
  const plans = () => [1, 2, 3].map((level) => ({ level, price: level * 10, items: [] }));
  const running = (level: number, until = new Date(Date.now() + 1e9).toISOString()) =>
    rig.put('accounts', { account, plan: { level, since: '2026-01-01', until } });
  const state = async () => (await rig.send('GET', '/v1/account/top-ups', key)).body['plans'];
  beforeEach(() => {
    rig.settings.subscriptionEnabled = true;
    const checkout = { secretKey: 'ssm:/relay/relay/stripe', currency: 'cny', endpoint: rig.endpoint };
    rig.payments({ checkout: { ...checkout, autoTopUp: false, plans: [1, 2] } });
    rig.plans = plans();
  });

  it('is sold for the price in its row, which the reference keeps', async () => {
    expect(await state()).toEqual([
      { level: 1, price: 10 },
      { level: 2, price: 20 },
    ]);
    expect((await rig.topUp(key, { plan: 2 })).body).toEqual({ url });
    const form = rig.stripe.asked[0]?.form;
    expect(form?.get('line_items[0][price_data][unit_amount]')).toBe('2000');
    rig.plans = [];
    const hook = new StripeRig();
    hook.store.accounts.add(account);
    const client_reference_id = form?.get('client_reference_id');
    const paid = { client_reference_id, amount_total: 2_000, currency: 'cny' };
    await hook.send('checkout.session.completed', session(paid));
    expect(hook.store.plans.get(account)).toMatchObject({ level: 2 });
    expect(hook.granted).toEqual([]);
  });

  it('is not sold below the running level, nor for a plan without an end', async () => {
    await running(2);
    expect(await state()).toEqual([{ level: 2, price: 20 }]);
    expect(said(await rig.topUp(key, { plan: 1 }))).toEqual([404, 'top_up_not_offered', null]);
    await rig.put('accounts', { account, plan: { level: 1, since: '2026-01-01' } });
    const other = await rig.maker({ account });
    expect(said(await rig.topUp(other.key, { plan: 2 }))).toEqual([404, 'top_up_not_offered', null]);
  });

  it.each([[3], [0], ['2'], [null], [{}]])(
    'of level %j, which is not for sale, is rejected before Stripe is called',
    async (plan) => {
      expect((await rig.topUp(key, { plan })).status).toBe(404);
      rig.plans = [{ level: 2, price: 0, items: [] }];
      expect((await rig.topUp(key, { plan: 2 })).status).toBe(404);
      expect(rig.stripe.asked).toEqual([]);
    },
  );
});
