import { createHash } from 'node:crypto';
import { PutCommand, ScanCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { newApiBalances } from '../support/new-api.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import {
  expectedSignature,
  secretOfCustomer,
  startWebhookReceiver,
  type Hook,
  type WebhookReceiver,
} from '../support/webhook-receiver.ts';

/** Alerts on the running stack: streams, functions and schedules, with receivers that verify each delivery. */
const secret = 'the-secret-that-signs';
const keyOf = (account: string): string => `sk-alerts-${account}`;
const hashOf = (account: string): string => createHash('sha256').update(keyOf(account)).digest('hex');

let upstream: ScriptedUpstream;
/** A vendor that reports the balance of a key. */
let site: ScriptedUpstream;
const siteKey = { limit: 100, used: 10 };
let receiver: WebhookReceiver;
let stack: WatchedStack;

beforeAll(async () => {
  [upstream, site, receiver] = await Promise.all([
    startScriptedUpstream(),
    startScriptedUpstream(),
    startWebhookReceiver(),
  ]);
  site.script(newApiBalances({ 'sk-site': siteKey }));
  stack = await startWatchedStack({
    environmentsMax: 4,
    functionEnvironment: { ALERTS_SECRET: secret, SITE_KEY: 'sk-site' },
    rows: [
      [
        'settings',
        { name: 'alerts', value: { webhook: `${receiver.address}/ops`, secret: 'env:ALERTS_SECRET' } },
      ],
      ['channels', { id: 'a', endpoint: upstream.endpoint, models: ['per-call'], state: true }],
      [
        'channels',
        {
          id: 'site',
          endpoint: site.endpoint,
          secret: 'env:SITE_KEY',
          models: ['other'],
          balance_form: 'new-api',
          balance_below: 5,
          state: true,
        },
      ],
      ['charges', { id: 10, type: 'times-billing', models: ['per-call'], output: 3 }],
      ['keys', { hash: hashOf('acme'), account: 'acme' }],
      ['keys', { hash: hashOf('closed'), account: 'closed' }],
      ['accounts', { account: 'closed', enabled: false, plan: 'gold' }],
      ['accounts', { account: 'acme', alert_below: '5.5', contact: { webhook: `${receiver.address}/acme` } }],
      ['grants', { account: 'acme', grant_id: 'first', amount: 10 }],
    ],
  });
});
afterAll(async () => {
  await stack.stop();
  await upstream.close();
  await site.close();
  await receiver.close();
});

const call = (account: string): Promise<Response> =>
  stack.post(
    { model: 'per-call', messages: [{ role: 'user', content: 'hi' }] },
    { headers: { authorization: `Bearer ${keyOf(account)}` } },
  );

async function spend(): Promise<void> {
  for (;;) {
    const response = await call('acme');
    await response.text();
    if (response.status === 200) return;
    // The grant is applied by its own stream.
    await shortly();
  }
}

const shortly = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

/** The items of `runtime` with this id prefix. */
async function items(prefix: string): Promise<Record<string, unknown>[]> {
  const { Items = [] } = await stack.store.documents.send(
    new ScanCommand({ TableName: 'relay-runtime', ConsistentRead: true }),
  );
  return Items.filter(({ id }) => String(id).startsWith(prefix));
}

/** Advances to the next retry, and runs the scheduled functions. */
async function retryNow(): Promise<void> {
  for (const { id } of await items('notice#'))
    await stack.store.documents.send(
      new UpdateCommand({
        TableName: 'relay-runtime',
        Key: { id },
        UpdateExpression: 'SET due = :zero',
        ExpressionAttributeValues: { ':zero': 0 },
      }),
    );
  await stack.runSchedules();
}

const idOf = ({ body }: Hook): string => (JSON.parse(body) as { id: string }).id;

it('posts a signed notice of a low balance once, retries it under the same id until it is accepted, and sends a new one after a top-up', async () => {
  // From the operators' receiver and the customer's, in any order.
  receiver.statuses.push(500, 500, 302, 500);
  await spend();
  await spend();
  const [first] = await receiver.received('/ops', 1);
  await receiver.received('/acme', 1);
  expect(JSON.parse(first?.body ?? '')).toEqual({
    id: expect.stringMatching(/^[0-9a-z]{26}$/) as unknown,
    type: 'balance.low',
    created: expect.any(Number) as unknown,
    account: 'acme',
    data: { balance: '4', alert_below: '5.5' },
  });
  while (receiver.hooks.length < 6) await retryNow();
  const [ops, customer] = [await receiver.received('/ops', 3), await receiver.received('/acme', 3)];
  await retryNow();
  expect([ops.length, customer.length, receiver.hooks.length]).toEqual([3, 3, 6]);
  expect(new Set([...ops, ...customer].map(idOf)).size).toBe(1);
  for (const hook of ops) expect(hook.headers['x-relay-signature']).toBe(expectedSignature(hook, secret));
  const own = secretOfCustomer(secret, 'acme');
  for (const hook of customer) expect(hook.headers['x-relay-signature']).toBe(expectedSignature(hook, own));

  await spend();
  await stack.store.documents.send(
    new PutCommand({ TableName: 'relay-grants', Item: { account: 'acme', grant_id: 'second', amount: 6 } }),
  );
  while ((await items('alert#balance#acme')).some(({ open }) => open)) await shortly();
  await spend();
  const again = (await receiver.received('/ops', 4)).slice(3);
  expect(again.map(idOf)).not.toEqual([idOf(ops[0] ?? again[0]!)]);
  await retryNow();
  expect(await items('notice#')).toHaveLength(2);
}, 60_000);

it('notifies only operators, once, if the reported balance of an upstream is low, and marks its row', async () => {
  const posts = receiver.hooks.length;
  const told = (await receiver.received('/ops', 0)).length;
  await stack.runSchedules();
  siteKey.used = 97.5;
  await Promise.all([stack.runSchedules(), stack.runSchedules()]);
  await stack.runSchedules();
  await receiver.received('/ops', told + 1);
  expect(receiver.hooks.slice(posts).map(({ path, body }) => [path, JSON.parse(body) as object])).toEqual([
    [
      '/ops',
      {
        id: expect.stringMatching(/^[0-9a-z]{26}$/) as unknown,
        type: 'upstream.balance_low',
        created: expect.any(Number) as unknown,
        data: { channel: 'site', secret: 'env:SITE_KEY', balance: '2.5 USD', balance_below: 5 },
      },
    ],
  ]);
  const { Items: [row] = [] } = await stack.store.documents.send(
    new ScanCommand({
      TableName: 'relay-channels',
      ConsistentRead: true,
      FilterExpression: 'id = :id',
      ExpressionAttributeValues: { ':id': 'site' },
    }),
  );
  expect(row?.['_balance']).toMatchObject({ low: true, text: '2.5 USD (env:SITE_KEY)' });
  expect(stack.lines.join('\n')).not.toContain('sk-site');
}, 60_000);

it('rejects the keys of a disabled account, even if its row is invalid', async () => {
  const [off, unknown] = await Promise.all(['closed', 'nobody'].map(call));
  expect([off?.status, unknown?.status]).toEqual([401, 401]);
  expect(await off?.json()).toEqual(await unknown?.json());
  const { reason } = await stack.logged(off?.headers.get('x-request-id') ?? '');
  expect(reason).toBe('key_account_disabled');
});
