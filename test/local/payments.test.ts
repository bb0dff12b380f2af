import { DeleteCommand, GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { dispute, reference, session, stripe, refund } from '../support/stripe-rig.ts';

/** Stripe's webhook on the running stack: distribution, function, tables, streams. */
const setting = {
  name: 'payments',
  value: {
    stripe: { live: true, webhook_secret: 'env:HOOK', link_secret: 'env:LINKS', rates: { usd: 7.1 } },
  },
};
const liveWithin = { timeout: 15_000, interval: 100 };

let stack: WatchedStack;
beforeAll(async () => {
  stack = await startWatchedStack({
    environmentsMax: 4,
    functionEnvironment: { HOOK: 'whsec_one', LINKS: 'link secret' },
    rows: [['accounts', { account: 'acme' }]],
  });
});
afterAll(() => stack.stop());

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

const available = async (): Promise<unknown> => {
  const command = new GetCommand({ TableName: 'relay-quotas', Key: { account: 'acme' } });
  return (await stack.store.documents.send(command)).Item?.['available'];
};

it('is an unknown path until the setting exists, then tops up once and takes refunds, then is unknown again', async () => {
  const paid = session({ client_reference_id: reference() });
  const unset = await deliver('checkout.session.completed', paid);
  expect(unset.status).toBe(404);
  expect(await unset.json()).toMatchObject({ error: { code: 'not_found' } });

  await stack.store.documents.send(new PutCommand({ TableName: 'relay-settings', Item: setting }));
  await vi.waitFor(
    async () => expect((await deliver('checkout.session.completed', paid)).status).toBe(200),
    liveWithin,
  );
  const again = await Promise.all([1, 2, 3, 4].map(() => deliver('checkout.session.completed', paid)));
  expect(again.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
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
