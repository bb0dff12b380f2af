import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deriveCustomerSecret, postNotice } from '../../../../shared/adapters/transport/notice-sender.ts';
import { createHttpsTransport } from '../../../../shared/adapters/transport/https-transport.ts';
import type { Notice } from '../../../../shared/wire/public-api.ts';
import {
  expectedSignature,
  secretOfCustomer,
  startWebhookReceiver,
  type WebhookReceiver,
} from '../../../support/webhook-receiver.ts';

const notice: Notice = { id: 'n1', type: 'plan.ended', created: 1, account: 'ä', data: { level: 1 } };
const clock = { now: () => 1_795_000_000_999 };
const secrets = {
  async read(reference: string): Promise<string> {
    if (reference !== 'env:HOOK') throw new Error('missing');
    return 'a-secret';
  },
};

let receiver: WebhookReceiver;
beforeAll(async () => {
  receiver = await startWebhookReceiver();
});
afterAll(() => receiver.close());

const post = (more: { path?: string; account?: string; signs?: string; url?: string; local?: boolean }) =>
  postNotice(
    { transport: createHttpsTransport({ local: more.local ?? true }), secrets, clock },
    {
      kind: 'webhook',
      url: more.url ?? `${receiver.address}${more.path ?? '/'}`,
      signs: more.signs ?? 'env:HOOK',
      ...(more.account !== undefined && { account: more.account }),
    },
    notice,
  );

describe('a webhook', () => {
  it('is posted as JSON, with time and body signed', async () => {
    expect(await post({ path: '/plain' })).toBeUndefined();
    const [hook] = await receiver.received('/plain', 1);
    expect(JSON.parse(hook?.body ?? '')).toEqual(notice);
    expect(hook?.headers).toMatchObject({
      'content-type': 'application/json',
      'x-relay-timestamp': '1795000000',
    });
    const signed = createHmac('sha256', 'a-secret').update(`1795000000.${hook?.body}`).digest('hex');
    expect(hook?.headers['x-relay-signature']).toBe(`v1=${signed}`);
  });

  it("of a customer is signed with the customer's own secret", async () => {
    expect(await post({ path: '/own', account: 'acme' })).toBeUndefined();
    const [hook] = await receiver.received('/own', 1);
    if (!hook) throw new Error('no hook');
    expect(hook.headers['x-relay-signature']).toBe(
      expectedSignature(hook, secretOfCustomer('a-secret', 'acme')),
    );
    expect(deriveCustomerSecret('a-secret', 'acme')).not.toBe(deriveCustomerSecret('a-secret', 'acme2'));
  });

  it('fails on any answer but 2xx, and does not follow redirects', async () => {
    receiver.statuses.push(500, 302, 202);
    const results = [
      await post({ path: '/odd' }),
      await post({ path: '/odd' }),
      await post({ path: '/odd' }),
    ];
    expect(results).toEqual(['status_500', 'status_302', undefined]);
    expect(receiver.hooks.some(({ path }) => path === '/elsewhere')).toBe(false);
  });

  it.each([
    [{ signs: 'env:OTHER' }, 'no_secret'],
    [{ local: false }, 'connect'],
    [{ url: 'https://localhost/', local: false }, 'connect'],
    [{ url: 'http://example.com/' }, 'connect'],
    [{ url: 'https://169.254.169.254/latest' }, 'connect'],
    [{ url: 'http://127.0.0.1:1/' }, 'connect'],
  ])('to %j is not sent', async (more, reason) => {
    const before = receiver.hooks.length;
    expect(await post(more)).toBe(reason);
    expect(receiver.hooks).toHaveLength(before);
  });
});
