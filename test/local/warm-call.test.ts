import { afterAll, beforeAll, expect, test } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';

/** One environment: the second call meets what the first left warm. */
let upstream: ScriptedUpstream;
let stack: WatchedStack;
let atUpstream: string[] = [];

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  upstream.script(async (_call, reply) => {
    atUpstream = asked();
    await reply.data(chunk({ role: 'assistant', content: 'ok' }), chunk({}, 'stop'), usageChunk(), '[DONE]');
    reply.end();
  });
  stack = await startWatchedStack({
    environmentsMax: 1,
    rows: [
      ['channels', { id: 'warm', endpoint: upstream.endpoint, models: ['metered', 'free'], state: true }],
      ['charges', { id: 10, type: 'token-billing', models: ['metered'], input: 1, output: 2 }],
    ],
  });
});
afterAll(async () => {
  await stack.stop();
  await upstream.close();
});

/** What the answering function asked of the store; the streams' functions and the sweeper have calls of their own. */
const asked = (): string[] =>
  stack.store.calls
    .map(({ action, table }) => `${action} ${table}`)
    .filter((call) => /^(GetItem|BatchGetItem|UpdateItem|PutItem|TransactWriteItems) /.test(call))
    .filter((call) => !/relay-(ledger|grants|daily)$|^TransactWriteItems/.test(call));

/** The calls of one request to the store: of the first that finds key and configuration warm. */
async function callsOf(model: string): Promise<string[]> {
  for (;;) {
    stack.store.calls.length = 0;
    const answer = await stack.post({ model, messages: [{ role: 'user', content: 'hi' }] });
    await answer.text();
    await stack.logged(answer.headers.get('x-request-id') ?? '');
    const calls = asked();
    // Refused until the stream has applied the seed's grant.
    if (answer.ok && !calls.some((call) => /^(Batch)?GetItem/.test(call))) return calls;
  }
}

test('a warm billed call takes two UpdateItem, one of them before the upstream hears of it', async () => {
  expect(await callsOf('metered')).toEqual(['UpdateItem relay-quotas', 'UpdateItem relay-quotas']);
  expect(atUpstream).toEqual(['UpdateItem relay-quotas']);
});

test('a warm free call is counted with two UpdateItem', async () => {
  expect(await callsOf('free')).toEqual(['UpdateItem relay-quotas', 'UpdateItem relay-quotas']);
});
