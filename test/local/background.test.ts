import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { textStream, textThenSilence } from '../support/upstream-scripts.ts';
import { keyOf, MoneyReader, rowsOfAccount, until } from './money-reader.ts';

let upstream: ScriptedUpstream;
let stack: WatchedStack;
let money: MoneyReader;

const accounts = ['answers', 'cancels', 'streams', 'deletes'] as const;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  stack = await startWatchedStack({
    environmentsMax: 3,
    functionEnvironment: { RELAY_SWEEP_GRACE: '0' },
    rows: [
      [
        'channels',
        { id: 'later', endpoint: upstream.endpoint, models: ['later'], state: true, idle_seconds: 300 },
      ],
      ['charges', { id: 20, type: 'token-billing', models: ['later'], input: 0.001, output: 0.001 }],
      ...accounts.flatMap((account) => rowsOfAccount(account, 1, { store: true })),
    ],
  });
  money = new MoneyReader(stack);
});
afterAll(async () => {
  await stack?.stop();
  await upstream?.close();
});

beforeEach(() => upstream.forget());

type Account = (typeof accounts)[number];
const headersOf = (account: Account) => ({ authorization: `Bearer ${keyOf(account)}` });

const ask = (account: Account, more: object = {}) =>
  stack.post(
    { model: 'later', input: 'Hello', max_output_tokens: 100, background: true, ...more },
    { path: '/v1/responses', headers: headersOf(account) },
  );

async function accepted(account: Account): Promise<string> {
  const response = await ask(account);
  const object = (await response.json()) as { id: string; status: string };
  expect([response.status, object.status]).toEqual([200, 'queued']);
  return object.id;
}

const call = async (account: Account, path: string, method = 'GET'): Promise<Response> =>
  fetch(`${stack.origin}/v1/responses/${path}`, { method, headers: headersOf(account) });

async function ended(account: Account, id: string): Promise<Record<string, unknown>> {
  let object: Record<string, unknown> = {};
  await until(async () => {
    object = (await (await call(account, id)).json()) as Record<string, unknown>;
    return !['queued', 'in_progress'].includes(String(object['status']));
  });
  return object;
}

describe('a background response on the running stack', () => {
  it('is accepted, runs in its own function, and is charged once', async () => {
    upstream.script(textStream('Hello there.'));
    const id = await accepted('answers');
    expect(await ended('answers', id)).toMatchObject({
      status: 'completed',
      background: true,
      output: [{ content: [{ text: 'Hello there.' }] }],
    });
    expect(stack.processes('background')).toHaveLength(1);
    const rows = await money.ledger('answers', 1);
    expect(rows).toMatchObject([{ id: id.replace('resp-', ''), kind: 'settled', endpoint: 'responses' }]);
    expect((await money.settled('answers')).settled).toBe(1);
    const event = stack.lines.filter((line) => line.includes('Hello there.'));
    expect(event).toEqual([]);
  });

  it('that is cancelled stops its upstream, shows what was written, and charges that', async () => {
    upstream.script(textThenSilence('Hello there'));
    const arrived = upstream.nextRequest();
    const id = await accepted('cancels');
    await arrived;
    const cancelled = await call('cancels', `${id}/cancel`, 'POST');
    expect(cancelled.status).toBe(200);
    expect(await cancelled.json()).toMatchObject({ id, status: 'cancelled' });
    const again = await call('cancels', `${id}/cancel`, 'POST');
    expect(await again.json()).toMatchObject({ id, status: 'cancelled' });
    expect(await money.ledger('cancels', 1)).toMatchObject([{ kind: 'settled' }]);
    expect(await ended('cancels', id)).toMatchObject({ status: 'cancelled' });
  });

  it('with stream shows all its events to whoever follows it', async () => {
    upstream.script(textStream('Hello there.'));
    const response = await ask('streams', { stream: true });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const text = await response.text();
    const types = [...text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type);
    expect(types.slice(0, 2)).toEqual(['response.created', 'response.in_progress']);
    expect(types.at(-1)).toBe('response.completed');
    const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
    expect(numbers).toEqual(numbers.map((_, index) => index));
    const id = /"id":"(resp-\w+)"/.exec(text)?.[1] ?? '';
    const rest = await (await call('streams', `${id}?stream=true&starting_after=2`)).text();
    expect(text.endsWith(rest) && rest !== '').toBe(true);
  });

  it('that is deleted while it runs is gone, and is charged', async () => {
    upstream.script(textThenSilence('Hello there'));
    const arrived = upstream.nextRequest();
    const id = await accepted('deletes');
    await arrived;
    expect((await call('deletes', id, 'DELETE')).status).toBe(200);
    expect((await call('deletes', id)).status).toBe(404);
    expect(await money.ledger('deletes', 1)).toMatchObject([{ kind: 'settled' }]);
    expect((await call('deletes', `${id}/cancel`, 'POST')).status).toBe(404);
  });
});
