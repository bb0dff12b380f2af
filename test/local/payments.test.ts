import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { DeleteCommand, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { hashCode } from '../../shared/config/rows/code-row.ts';
import { keyHash } from '../../shared/wire/ids.ts';
import { listening } from '../support/listening.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { StripeDouble } from '../support/stripe-double.ts';
import { dispute, reference, session, stripe, refund } from '../support/stripe-rig.ts';

/** Stripe's webhook on the running stack: distribution, function, tables, streams. */
const setting = {
  name: 'payments',
  value: {
    stripe: { live: true, webhook_secret: 'env:HOOK', link_secret: 'env:LINKS', rates: { usd: 7.1 } },
  },
};
const liveWithin = { timeout: 15_000, interval: 300 };

let stack: WatchedStack;
let upstream: ScriptedUpstream;
beforeAll(async () => {
  upstream = await startScriptedUpstream();
  stack = await startWatchedStack({
    environmentsMax: 4,
    functionEnvironment: { HOOK: 'whsec_one', LINKS: 'link secret', STRIPE: 'sk_test_1' },
    rows: [
      ['accounts', { account: 'acme' }],
      ['accounts', { account: 'beta' }],
      ['keys', { hash: keyHash('sk-maker'), account: 'beta', hint: 'sk-ma...er', manage: true, rpm: 60 }],
      ['channels', { id: 'a', endpoint: upstream.endpoint, models: ['per-call'], state: true }],
      ['charges', { id: 10, type: 'times-billing', models: ['per-call'], output: 4 }],
      ['accounts', { account: 'auto', contact: {} }],
      ['keys', { hash: keyHash('sk-auto'), account: 'auto', hint: 'sk-au...to', manage: true }],
    ],
  });
});
afterAll(async () => {
  await stack.stop();
  await upstream.close();
});

async function deliver(type: string, object: object, timestamp?: number): Promise<Response> {
  const created = Math.floor(Date.now() / 1000);
  // With characters beyond ASCII: the signature is over bytes.
  const payload = JSON.stringify({ id: 'evt_ü', type, livemode: true, created, data: { object } }, null, 2);
  const signed = { payload, secret: 'whsec_one', timestamp: timestamp ?? created };
  return fetch(`${stack.origin}/hooks/payments/stripe`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'stripe-signature': stripe.webhooks.generateTestHeaderString(signed),
    },
    body: payload,
  });
}

const available = async (account = 'acme'): Promise<unknown> => {
  const command = new GetCommand({ TableName: 'relay-quotas', Key: { account } });
  return (await stack.store.documents.send(command)).Item?.['available'];
};

it('is an unknown path until the setting exists, then credits once and applies refunds, then is unknown again', async () => {
  const paid = session({ client_reference_id: reference() });
  const unset = await deliver('checkout.session.completed', paid);
  expect(unset.status).toBe(404);
  expect(await unset.json()).toMatchObject({ error: { code: 'not_found' } });

  await stack.store.documents.send(new PutCommand({ TableName: 'relay-settings', Item: setting }));
  await vi.waitFor(
    async () => expect((await deliver('checkout.session.completed', paid)).status).toBe(200),
    liveWithin,
  );
  // Another environment may use the old configuration for some seconds; Stripe retries rejected events.
  await vi.waitFor(async () => {
    const again = await Promise.all([1, 2, 3, 4].map(() => deliver('checkout.session.completed', paid)));
    expect(again.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  }, liveWithin);
  await vi.waitFor(async () => expect(await available()).toBe(71_000_000_000), liveWithin);

  expect((await deliver('refund.created', refund())).status).toBe(200);
  await vi.waitFor(async () => expect(await available()).toBe(42_600_000_000), liveWithin);

  for (const amount of [200, 500]) {
    const type = `charge.dispute.${amount === 200 ? 'created' : 'updated'}`;
    expect((await deliver(type, dispute({ amount }))).status).toBe(200);
  }
  await vi.waitFor(async () => expect(await available()).toBe(7_100_000_000), liveWithin);

  const old = await deliver('refund.created', refund({ id: 're_2' }), Math.floor(Date.now() / 1000) - 3600);
  expect(old.status).toBe(400);

  const Key = { name: 'payments' };
  await stack.store.documents.send(new DeleteCommand({ TableName: 'relay-settings', Key }));
  await vi.waitFor(async () => expect((await deliver('ping', {})).status).toBe(404), liveWithin);
}, 60_000);

it('with a key that has the right, a customer creates and revokes keys and tops up, and the paid amount is credited', async () => {
  const asked: URLSearchParams[] = [];
  const double = createServer((request, response) => {
    void text(request).then((body) => {
      const form = new URLSearchParams(body);
      asked.push(form);
      const client_reference_id = form.get('client_reference_id');
      response.end(
        JSON.stringify({ livemode: true, client_reference_id, url: 'https://checkout.example/1' }),
      );
    });
  });
  const checkout = { secret_key: 'env:STRIPE', currency: 'usd', endpoint: await listening(double) };
  const bonus = { name: 'top_up_bonus', value: [{ pay: 71, get: 80 }] };
  await stack.store.documents.send(new PutCommand({ TableName: 'relay-settings', Item: bonus }));
  const Item = { ...setting, value: { stripe: { ...setting.value.stripe, checkout } } };
  await stack.store.documents.send(new PutCommand({ TableName: 'relay-settings', Item }));
  const ask = async (method: string, path: string, body?: object, key = 'sk-maker') => {
    const response = await fetch(`${stack.origin}/v1/account${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, string> };
  };
  const made = await ask('POST', '/keys', { name: 'till', rpm: 5 });
  expect(made).toMatchObject({ status: 201, body: { name: 'till', state: 'usable' } });
  expect((await ask('GET', '', undefined, made.body['key'])).body).toMatchObject({
    key: { hint: made.body['hint'], limits: { rpm: 5 } },
  });
  const next = await ask('POST', `/keys/${made.body['id']}/rotate`, { grace_hours: 1 });
  expect(next.status).toBe(201);
  expect((await ask('DELETE', `/keys/${next.body['id']}`)).status).toBe(200);
  expect((await ask('GET', '', undefined, next.body['key'])).status).toBe(401);
  expect((await ask('GET', '/keys', undefined, made.body['key'])).status).toBe(403);

  await vi.waitFor(
    async () => expect((await ask('GET', '/keys')).body).toMatchObject({ top_up: 'checkout' }),
    liveWithin,
  );
  const answer = { status: 200, body: { url: 'https://checkout.example/1' } };
  await vi.waitFor(
    async () => expect(await ask('POST', '/top-ups', { amount: 71 })).toEqual(answer),
    liveWithin,
  );
  const client_reference_id = asked.at(-1)?.get('client_reference_id');
  const paid = session({ client_reference_id, payment_intent: 'pi_9', amount_total: 1000 });
  expect(asked.at(-1)?.get('success_url')).toBe(`${stack.origin}/account?top_up=done`);
  expect(await available('beta')).toBeUndefined();
  await vi.waitFor(
    async () => expect((await deliver('checkout.session.completed', paid)).status).toBe(200),
    liveWithin,
  );
  await vi.waitFor(async () => expect(await available('beta')).toBe(80_000_000_000), liveWithin);

  const code = { hash: hashCode('7KXQ2-M9PTA-0ZDVC-H4WEN'), batch: 'spring', amount: 1.5 };
  await stack.store.documents.send(new PutCommand({ TableName: 'relay-codes', Item: code }));
  const redeemed = await Promise.all(
    Array.from({ length: 10 }, () => ask('POST', '/codes', { code: '7kxq2 m9pta ozdvc h4wen' })),
  );
  expect(redeemed.map(({ status, body }) => [status, body['amount']])).toEqual(
    redeemed.map(() => [200, 1.5]),
  );
  await vi.waitFor(async () => expect(await available('beta')).toBe(81_500_000_000), liveWithin);
}, 60_000);

it('charges a stored card once if parallel calls cross the threshold, and never after it was disabled', async () => {
  const stripeApi = await new StripeDouble().start();
  const checkout = {
    secret_key: 'env:STRIPE',
    currency: 'cny',
    endpoint: stripeApi.endpoint,
    auto_top_up: true,
  };
  const { stripe: provider } = setting.value;
  const Item = {
    name: 'payments',
    value: { stripe: { ...provider, rates: { usd: 7.1, cny: 1 }, checkout } },
  };
  const bonus = { name: 'top_up_bonus', value: [{ pay: 71, get: 80 }] };
  for (const row of [bonus, Item])
    await stack.store.documents.send(new PutCommand({ TableName: 'relay-settings', Item: row }));
  const headers = { authorization: 'Bearer sk-auto', 'content-type': 'application/json' };
  const url = `${stack.origin}/v1/account/top-ups`;
  const ask = async (body: object) => {
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await response.json()) as Record<string, unknown>;
  };
  // Includes the bonus of each payment, over all shards, because parallel calls may split the account.
  const balance = async () => {
    const body = await (await fetch(`${stack.origin}/v1/account`, { headers })).json();
    return (body as { available: number }).available;
  };
  const state = async () => (await (await fetch(url, { headers })).json()) as { auto: object | null };
  await vi.waitFor(
    async () => expect(await state()).toMatchObject({ auto_offered: true, auto: null }),
    liveWithin,
  );
  const wanted = { amount: 120, auto: { below: 40, monthly_limit: 500 } };
  // Another environment of the function may still use the old setting.
  const answer = { url: 'https://checkout.example/cs_1' };
  await vi.waitFor(async () => expect(await ask(wanted)).toEqual(answer), liveWithin);
  stripeApi.pay('cs_1');
  const hook = `${stack.origin}/hooks/payments/stripe`;
  const deliver = (secret = 'whsec_one') =>
    stripeApi.deliver(hook, secret, [...stripeApi.events, ...stripeApi.events]);
  const terms = { on: true, below: 40, amount: 120, monthly_limit: 500 };
  // An environment with the old setting parks the payment, because it has no rate. Stripe sends its events again.
  await vi.waitFor(async () => {
    expect(new Set(await deliver())).toEqual(new Set([200]));
    expect(await balance()).toBe(129);
    expect(await state()).toMatchObject({ auto: terms });
  }, liveWithin);

  const body = { model: 'per-call', messages: [{ role: 'user', content: 'hi' }] };
  const calls = await Promise.all(Array.from({ length: 25 }, () => stack.post(body, { headers })));
  expect(calls.filter(({ status }) => status === 200)).toHaveLength(25);
  await Promise.all(calls.map((call) => call.text()));
  await vi.waitFor(() => expect(stripeApi.charged.slice(1)).toMatchObject([{ amount: 12_000 }]), liveWithin);
  expect(await deliver('whsec_other')).toContain(400);
  await vi.waitFor(async () => {
    expect(new Set(await deliver())).toEqual(new Set([200]));
    expect(await balance()).toBe(158);
  }, liveWithin);
  await stack.runSchedules();
  await vi.waitFor(async () => expect(await state()).toMatchObject({ auto: { pending: false } }), liveWithin);

  // Each call may reach another environment, and that one may still use the old setting.
  const lower = { amount: 100, auto: { below: 40, monthly_limit: 500 } };
  await vi.waitFor(async () => expect(await ask(lower)).toMatchObject({ auto: { amount: 100 } }), liveWithin);
  await vi.waitFor(async () => expect(await ask({ auto: null })).toEqual({ auto: null }), liveWithin);
  // Below the threshold.
  const more = await Promise.all(Array.from({ length: 30 }, () => stack.post(body, { headers })));
  await Promise.all(more.map((call) => call.text()));
  await vi.waitFor(async () => expect(await balance()).toBe(38), liveWithin);
  await stack.post(body, { headers });
  await stack.runSchedules();
  expect(stripeApi.charged).toHaveLength(2);
  stripeApi.stop();
}, 60_000);
