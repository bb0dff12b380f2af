import { connect, type Socket } from 'node:net';
import { GetCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { keyHash, keyOf, MoneyReader, rowsOfAccount, until } from '../local/money-reader.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { firstWord, provoked, worstUpstream } from '../support/worst-upstream.ts';
import { rawPost } from './raw-client.ts';
import { startWatchedStack, type WatchedStack } from './watched-stack.ts';

/** A hostile tenant next to an ordinary one, on the running stack. Counts calls, never time. */
const callsAtOnce = 2;
const environmentsMax = 8;

let upstream: ScriptedUpstream;
let stack: WatchedStack;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  const models = ['single'];
  stack = await startWatchedStack({
    environmentsMax,
    rows: [
      ['channels', { id: 'only', endpoint: upstream.endpoint, models, state: true }],
      ['charges', { id: 10, type: 'token-billing', models, input: 0.001, output: 0.002 }],
      ['settings', { name: 'limits', value: { account_concurrency: callsAtOnce } }],
      ...rowsOfAccount('hostile', 100_000),
      ['keys', { hash: keyHash('hostile-second'), account: 'hostile' }],
      ...rowsOfAccount('hostile-twin', 100_000),
      // Refusals of an account at its limit are cached for a second.
      ...rowsOfAccount('hostile-reader', 100_000),
      ...rowsOfAccount('honest', 1000),
    ],
  });
});
afterAll(async () => {
  await stack?.stop();
  await upstream?.close();
});
beforeEach(() => {
  upstream.script(worstUpstream());
  upstream.forget();
});

const ask = (word: string, more: object = {}) => ({
  model: 'single',
  max_tokens: 100,
  messages: [{ role: 'user', content: word }],
  ...more,
});

interface Outcome {
  status: number;
  text: string;
  attempts: string | null;
}
async function post(key: string, body: object | string, more: Record<string, string> = {}): Promise<Outcome> {
  const answer = await stack.post(body, { headers: { authorization: `Bearer ${keyOf(key)}`, ...more } });
  const attempts = answer.headers.get('x-relay-attempts');
  return { status: answer.status, text: await answer.text(), attempts };
}

/** Sequential calls of the honest tenant. Each is complete, and called the only channel once. */
async function honestCalls(count = 2): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const { status, text, attempts } = await post('honest', ask(`hello ${at}`, { stream: at % 2 === 0 }));
    expect([status, attempts]).toEqual([200, '1']);
    expect(text).toContain('Served.');
  }
}

const codeOf = ({ status, text }: Outcome): string =>
  status === 200 ? '200' : String((JSON.parse(text) as { error: { code: unknown } }).error.code);

/** The stored health of candidates, and its size. */
async function health(): Promise<string> {
  const { Item = {} } = await stack.store.documents.send(
    new GetCommand({ TableName: 'relay-runtime', Key: { id: 'health' }, ConsistentRead: true }),
  );
  return JSON.stringify(Item);
}

/** Bad content, by its effect on the upstream. Hanging and endless answers have their own tests. */
const words = Object.keys(provoked).filter((word) => !['hang', 'long', 'minute'].includes(word));

describe('content of one account that makes the upstream fail', () => {
  it.each(words)('affects only that account: %s', async (word) => {
    for (const key of ['hostile', 'hostile-second', 'hostile'])
      await post(key, ask(word, { stream: true, max_tokens: 1_000_000 }));
    upstream.forget();
    await honestCalls();
    expect(upstream.requests.map(firstWord)).toEqual(['hello', 'hello']);
  });

  it('and of a second account of the same caller puts the channel last, but it is still used', async () => {
    for (const word of ['crash', 'close', 'empty', 'inside', 'overloaded', 'minute'])
      for (const key of ['hostile', 'hostile-twin']) {
        await post(key, ask(word));
        await honestCalls(1);
      }
    expect((await health()).length).toBeLessThan(4096);
  });
});

const holdsPlaces = async (account: string, count: number): Promise<void> => {
  const money = new MoneyReader(stack);
  await until(async () => (await money.account(account)).open === count);
};

describe('the capacity that one caller can occupy', () => {
  it('is limited to its parallel calls, whichever of its keys it uses: 120 hanging streams', async () => {
    const leave = new AbortController();
    const over = Promise.withResolvers<void>();
    const usual = worstUpstream();
    upstream.script(async (call, reply) => {
      if (firstWord(call) !== 'hang') return usual(call, reply);
      await over.promise;
      reply.reset();
    });
    const refused: string[] = [];
    const running = Promise.withResolvers<void>();
    const keys = ['hostile', 'hostile-second', 'hostile-twin'];
    const floods = Array.from({ length: 120 }, async (_, at) => {
      const headers = { authorization: `Bearer ${keyOf(keys[at % 3] ?? '')}` };
      const answer = await stack.post(ask('hang', { stream: true }), { headers, signal: leave.signal });
      refused.push(codeOf({ status: answer.status, text: await answer.text(), attempts: null }));
      if (refused.length === 120 - 2 * callsAtOnce) running.resolve();
    });
    await running.promise;
    await honestCalls(4);
    expect(new Set(refused)).toEqual(new Set(['rate_limit_exceeded']));
    expect(upstream.requests.filter((call) => firstWord(call) === 'hang')).toHaveLength(2 * callsAtOnce);
    leave.abort();
    over.resolve();
    await Promise.allSettled(floods);
    // A function does not learn that its client has gone: the calls end with the upstream.
    for (const account of ['hostile', 'hostile-twin']) await holdsPlaces(account, 0);
  });

  it('is the same with clients that read nothing of long answers: a call counts until its answer is delivered', async () => {
    const sockets: Socket[] = [];
    onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
    const { hostname, port } = new URL(stack.origin);
    const body = JSON.stringify(ask('long', { stream: true, max_tokens: 1_000_000 }));
    const stalls = async (key: string): Promise<string> => {
      const socket = connect(Number(port), hostname).on('error', () => undefined);
      sockets.push(socket);
      socket.write(rawPost(keyOf(key), { body }));
      const head = await new Promise<Buffer>((resolve) => socket.once('data', resolve));
      socket.pause();
      return head.toString('latin1').slice(9, 12);
    };
    const wave = (): Promise<string[]> =>
      Promise.all(Array.from({ length: callsAtOnce }, () => stalls('hostile-reader')));
    expect(await wave()).toEqual(['200', '200']);
    // The upstream has sent all of it, and still:
    await Promise.all(upstream.requests.map(({ closed }) => closed));
    for (let at = 0; at < environmentsMax; at += 1) expect(await wave()).toEqual(['429', '429']);
    await honestCalls();
    await holdsPlaces('hostile-reader', callsAtOnce);
  });
});

describe('rejected requests', () => {
  const refusals: [string, object | string, string][] = [
    ['an absurd number of choices', ask('hello', { n: 1_000_000 }), 'invalid_value'],
    [
      'an absurd limit with log probabilities',
      ask('hello', { n: 8, max_tokens: 1e9, logprobs: true, top_logprobs: 20 }),
      '',
    ],
    ['more values than a body may have', `[${'0,'.repeat(100_000)}0]`, 'json_too_wide'],
    [
      'a name of a megabyte',
      ask('hello', { tools: [{ type: 'function', function: { name: 'n'.repeat(1024 * 1024) } }] }),
      '',
    ],
    ['a million levels', '['.repeat(1024 * 1024), 'json_too_deep'],
    [
      'an address inside',
      ask('hello', {
        messages: [
          { role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://169.254.169.254/' } }] },
        ],
      }),
      '',
    ],
  ];
  it.each(refusals)('are rejected by name before any upstream request: %s', async (_what, body, code) => {
    const outcomes = await Promise.all(Array.from({ length: 12 }, () => post('hostile', body)));
    for (const one of outcomes) {
      expect(one.status).toBeGreaterThanOrEqual(400);
      if (code !== '' && one.status !== 429) expect(codeOf(one)).toBe(code);
    }
    expect(upstream.requests).toEqual([]);
    await honestCalls();
  });

  it('with 300 unknown keys do not evict the known one', async () => {
    const flood = Array.from({ length: 300 }, (_, at) => post(`unknown-${at}`, ask('hello')));
    await honestCalls();
    expect(new Set((await Promise.all(flood)).map(codeOf))).toEqual(new Set(['invalid_api_key']));
    await honestCalls();
  });

  it('or answered ones, with 60 idempotency keys and bodies on other paths, do not affect the honest tenant', async () => {
    const claims = Array.from({ length: 60 }, (_, at) =>
      post('hostile', ask('crash'), { 'idempotency-key': `${at}-${'k'.repeat(200)}` }),
    );
    const others = ['/v1/models', '/v1/account', '/health', '/'].map((path) =>
      fetch(`${stack.origin}${path}`, { method: 'POST', body: 'x'.repeat(5_000_000) }).then(
        ({ status }) => status,
      ),
    );
    await honestCalls();
    for (const one of await Promise.all(claims)) expect(one.status).toBeGreaterThanOrEqual(400);
    for (const status of await Promise.all(others)) expect(status).toBeGreaterThanOrEqual(400);
    await honestCalls();
  });
});
