/** The server as its image runs it, next to the functions of one stack, on the same tables. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { keyOf, MoneyReader, rowsOfAccount, until } from '../local/money-reader.ts';
import { runAudit } from '../soak/audit.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { dockerfile, startContainer, type Container } from './container.ts';

const ofServer = 128;
const ofFunctions = 4;
const wave = 16;
const accounts = Array.from({ length: 8 }, (_, at) => `both-${at}`);

let upstream: ScriptedUpstream;
let stack: WatchedStack;
let container: Container;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  stack = await startWatchedStack({
    environmentsMax: ofFunctions,
    rows: [
      [
        'channels',
        {
          id: 'scripted',
          endpoint: upstream.endpoint,
          models: ['metered'],
          state: true,
          idle_seconds: 900,
          first_content_seconds: 900,
        },
      ],
      ['charges', { id: 10, type: 'token-billing', models: ['metered'], input: 1, output: 2 }],
      ...accounts.flatMap((name) => rowsOfAccount(name, 1000)),
    ],
  });
  const reader = new MoneyReader(stack);
  await until(async () => {
    const there = await reader.accounts();
    return accounts.every((name) => there.has(name));
  });
  const {
    NODE_OPTIONS: _heap,
    ORIGIN_SECRETS = '',
    SEAL_KEYS = '{}',
    ...variables
  } = stack.environments.get('responses') ?? {};
  const seals = Object.entries(JSON.parse(SEAL_KEYS) as Record<string, string>);
  container = await startContainer({
    ...variables,
    // As single variables, like ECS sets them.
    ...Object.fromEntries(ORIGIN_SECRETS.split(',').map((secret, at) => [`ORIGIN_SECRET_${at + 1}`, secret])),
    ...Object.fromEntries(seals.map(([number, secret]) => [`SEAL_KEY_${number}`, secret])),
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    AWS_EC2_METADATA_DISABLED: 'true',
    RELAY_COUNT_SECONDS: '1',
  });
}, 120_000);
afterAll(async () => {
  container?.remove();
  await stack?.stop();
  await upstream?.close();
});

/** Posts to the server as the balancer does, or through the front door to a function. */
const post = (host: 'server' | 'functions', account: string, content: string): Promise<Response> => {
  const { ORIGIN_SECRETS = '' } = stack.environments.get('responses') ?? {};
  const isServer = host === 'server';
  return fetch(`${isServer ? container.origin : stack.origin}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${keyOf(account)}`,
      'content-type': 'application/json',
      ...(isServer && { 'x-relay-origin': ORIGIN_SECRETS.split(',').at(-1) ?? '' }),
    },
    body: JSON.stringify({ model: 'metered', stream: true, messages: [{ role: 'user', content }] }),
  });
};

const framesOf = (...frames: object[]): string =>
  [...frames.map((frame) => JSON.stringify(frame)), '[DONE]'].map((each) => `data: ${each}\n\n`).join('');
const contentOf = (text: string): string =>
  [...text.matchAll(/^data: (\{.*\})$/gm)]
    .map(([, json]) => JSON.parse(String(json)) as { choices?: { delta: { content?: string } }[] })
    .map(({ choices }) => choices?.[0]?.delta.content ?? '')
    .join('');
const saidIn = (body: Record<string, unknown>): string =>
  (body['messages'] as { content: string }[]).at(-1)?.content ?? '';
const wordsOf = (mark: string): string[] => Array.from({ length: 10 }, (_, at) => `${mark}/${at} `);

describe('the image of the server', { timeout: 240_000 }, () => {
  test('uses Node 24, runs as an unprivileged user, and passes its own health check', async () => {
    const [pinned, used] = dockerfile.bases;
    expect(pinned).toMatch(/\/node:24-slim@sha256:[0-9a-f]{64} AS pinned$/);
    expect([dockerfile.argument, used]).toEqual(['NODE_IMAGE=pinned', '${NODE_IMAGE}']);
    expect(dockerfile.uid).toBeGreaterThan(0);
    expect(await container.health()).toBe(0);
  });

  test(`serves ${ofServer} streams at once while functions serve ${ofFunctions}: each is complete and separate, each is billed once, and all balances match`, async () => {
    const all = Promise.withResolvers<void>();
    let arrived = 0;
    upstream.script(async ({ body }, reply) => {
      const mark = saidIn(body);
      const [first = '', ...others] = wordsOf(mark);
      await reply.data(chunk({ role: 'assistant', content: first }));
      arrived += 1;
      if (arrived === ofServer + ofFunctions) all.resolve();
      await all.promise;
      for (const word of others) await reply.data(chunk({ content: word }));
      const at = Number(mark.slice(1));
      const usage = { prompt_tokens: 100 + at, completion_tokens: 60 + at, total_tokens: 160 + 2 * at };
      reply.end(framesOf(chunk({}, 'stop'), usageChunk(usage)));
    });
    const begun: { at: number; account: string; id: string; text: Promise<string> }[] = [];
    const numbers = Array.from({ length: ofServer + ofFunctions }, (_, at) => at);
    // All run at once, but start in groups, because they share one emulated store with this process.
    for (let from = 0; from < numbers.length; from += wave)
      begun.push(
        ...(await Promise.all(
          numbers.slice(from, from + wave).map(async (at) => {
            const account = accounts[at % accounts.length] ?? '';
            const response = await post(at < ofServer ? 'server' : 'functions', account, `m${at}`);
            return { at, account, id: response.headers.get('x-request-id') ?? '', text: response.text() };
          }),
        )),
      );
    const texts = await Promise.all(begun.map(({ text }) => text));
    const ids = texts.map((text) => [...new Set([...text.matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id))]);
    expect(ids.filter(({ length }) => length !== 1)).toEqual([]);
    expect(new Set(ids.flat()).size).toBe(texts.length);
    for (const [index, { at }] of begun.entries()) {
      const text = texts[index] ?? '';
      expect(contentOf(text)).toBe(wordsOf(`m${at}`).join(''));
      expect(text.trimEnd()).toMatch(/data: \[DONE\]$/);
    }
    const reader = new MoneyReader(stack);
    for (const account of accounts) {
      const own = begun.filter((call) => call.account === account);
      const rows = await reader.ledger(account, own.length);
      const charges = new Map(own.map(({ id, at }) => [id, (220 + 3 * at) / 1000]));
      expect(new Map(rows.map((row) => [row['id'], row['charge']]))).toEqual(charges);
      const { available, spent } = await reader.settled(account);
      expect(available + spent).toBe(1000e9);
      expect(spent).toBe(Math.round([...charges.values()].reduce((sum, charge) => sum + charge, 0) * 1e9));
    }
    expect(await runAudit(stack.store.endpoint, [])).toMatchObject({
      exitCode: 0,
      output: expect.stringContaining('all balances match') as string,
    });
    // The metric for scaling: the count while they ran.
    const counts = container.lines.flatMap((line) => /"RequestsInFlight":(\d+)/.exec(line)?.[1] ?? []);
    expect(Math.max(...counts.map(Number))).toBeGreaterThan(1);
  });

  test('exits with 0 after SIGTERM once its streams are complete, and is not healthy until then', async () => {
    const go = Promise.withResolvers<void>();
    upstream.script(async (_call, reply) => {
      await reply.data(chunk({ role: 'assistant', content: 'first ' }));
      await go.promise;
      reply.end(framesOf(chunk({ content: 'last' }), chunk({}, 'stop'), usageChunk()));
    });
    const response = await post('server', accounts[0] ?? '', 'hi');
    container.end();
    await container.line('server_ending');
    expect(await container.health()).toBe(1);
    go.resolve();
    expect(contentOf(await response.text())).toBe('first last');
    expect(await container.ended).toBe(0);
    expect(await container.line('server_ended')).toContain('"unsettled":0');
  });
});
