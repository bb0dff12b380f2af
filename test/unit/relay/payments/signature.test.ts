import { describe, expect, test } from 'vitest';
import { session, stripe, StripeRig } from '../../../support/stripe-rig.ts';

const errorOf = (body: unknown): { code: string } =>
  (JSON.parse(String(body)) as { error: { code: string } }).error;

describe('an event that is not signed by a secret of the endpoint', () => {
  const good = (rig: StripeRig) => rig.sign(rig.event('checkout.session.completed', session()));
  const seconds = (rig: StripeRig) => Math.floor(rig.nowMs / 1000);
  const v1 = (_: StripeRig, body: string, timestamp: number, secret = 'whsec_one') =>
    stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp }).split(',')[1];

  test.each<[string, (rig: StripeRig) => { body?: string; header?: string | undefined }]>([
    ['no header', () => ({ header: undefined })],
    ['an empty header', () => ({ header: '' })],
    ['no time', (rig) => ({ header: String(good(rig).header).replace(/^t=\d+,/, '') })],
    ['no v1', (rig) => ({ header: `t=${seconds(rig)}` })],
    ['only a v0', (rig) => ({ header: String(good(rig).header).replace('v1=', 'v0=') })],
    ['a changed body', (rig) => ({ body: good(rig).body.replace('1000', '9000') })],
    ['an additional space', (rig) => ({ body: `${good(rig).body} ` })],
    ['another secret', (rig) => rig.sign(good(rig).body, { secret: 'whsec_other' })],
    [
      'the new secret before it is in the setting',
      (rig) => rig.sign(good(rig).body, { secret: 'whsec_two' }),
    ],
    ['a time of 301 s ago', (rig) => rig.sign(good(rig).body, { timestamp: seconds(rig) - 301 })],
    ['a time in 301 s', (rig) => rig.sign(good(rig).body, { timestamp: seconds(rig) + 301 })],
    [
      'an old signature under a new time',
      (rig) => ({ header: `t=${seconds(rig)},${v1(rig, good(rig).body, seconds(rig) - 3600)}` }),
    ],
    ['a short v1', (rig) => ({ header: String(good(rig).header).slice(0, -2) })],
    ['an endless time', (rig) => ({ header: String(good(rig).header).replace('t=', 't=99999999999999999') })],
    ['a thousand v1', (rig) => ({ header: `t=${seconds(rig)}${`,v1=${'0'.repeat(64)}`.repeat(1000)}` })],
  ])('is rejected before the store is read: %s', async (_name, change) => {
    const rig = new StripeRig();
    const response = await rig.deliver({ ...good(rig), ...change(rig) });
    expect(response.status).toBe(400);
    expect(errorOf(response.body).code).toBe('invalid_signature');
    expect(rig.store.reads).toBe(0);
    expect(rig.granted).toEqual([]);
  });

  test('is rejected before secrets are read if its form or time is invalid', async () => {
    const rig = new StripeRig();
    await rig.deliver(rig.sign('{}', { timestamp: seconds(rig) - 301 }));
    await rig.deliver({ body: '{}', header: `t=${seconds(rig)}` });
    expect(rig.secretReads).toBe(0);
  });
});

describe('a signed event', () => {
  test('is valid for 5 minutes, under every secret of the list, and beside other signatures', async () => {
    const rig = new StripeRig();
    const seconds = Math.floor(rig.nowMs / 1000);
    const hooks = ['ssm:/relay/relay/hook', 'ssm:/relay/relay/hook-new'];
    rig.settings = rig.settings && { ...rig.settings, webhookSecrets: hooks };
    const body = rig.event('checkout.session.completed', session());
    const old = rig.sign(body, { timestamp: seconds - 299 });
    expect((await rig.deliver(old)).status).toBe(200);
    expect((await rig.deliver(rig.sign(body, { secret: 'whsec_two' }))).status).toBe(200);
    const two = { body, header: `${old.header},v1=${'ab'.repeat(32)},v0=${'cd'.repeat(32)}` };
    expect((await rig.deliver(two)).status).toBe(200);
    expect(rig.granted).toEqual(['acme pi_1 71']);
  });

  test('is answered with 503, not rejected, while a secret that may fit is unreadable', async () => {
    const rig = new StripeRig();
    const hooks = ['ssm:/relay/relay/gone', 'ssm:/relay/relay/hook'];
    rig.settings = rig.settings && { ...rig.settings, webhookSecrets: hooks };
    expect(await rig.send('checkout.session.completed', session())).toBe(200);
    const body = rig.event('checkout.session.completed', session());
    expect((await rig.deliver(rig.sign(body, { secret: 'whsec_two' }))).status).toBe(503);
  });

  test.each([
    ['no JSON', '{"id":', 400, 'invalid_json'],
    ['a text', '"hello"', 400, 'invalid_event'],
    ['over 256 KB', JSON.stringify({ text: 'x'.repeat(270_000) }), 413, 'request_too_large'],
  ])('is rejected if its body is %s', async (_name, body, status, code) => {
    const rig = new StripeRig();
    const response = await rig.deliver(rig.sign(body));
    expect(response.status).toBe(status);
    expect(errorOf(response.body).code).toBe(code);
  });

  test('gets 404 while the setting is missing, and on other paths', async () => {
    const rig = new StripeRig();
    const signed = rig.sign(rig.event('checkout.session.completed', session()));
    expect((await rig.deliver(signed, '/hooks/payments/other')).status).toBe(404);
    rig.settings = undefined;
    const response = await rig.deliver(signed);
    expect(response.status).toBe(404);
    expect(errorOf(response.body).code).toBe('not_found');
    expect(rig.store.reads + rig.secretReads).toBe(0);
  });
});
