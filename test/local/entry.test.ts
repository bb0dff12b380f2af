import { connect } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { rawPost } from '../hardening/raw-client.ts';
import type { WatchedStack } from '../hardening/watched-stack.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { textStream } from '../support/upstream-scripts.ts';
import { accountsStack, leaveAccountsStack, type AccountsStack } from './accounts-stack.ts';
import { keyOf, nano, rowsOfAccount, until, type MoneyReader } from './money-reader.ts';

/** Unusual requests to the running stack, and repeats, which any environment answers, also after the first one has died. */
let upstream: ScriptedUpstream;
let stack: WatchedStack;
let money: MoneyReader;
let alias: AccountsStack['alias'];

const marksWithin = { timeout: 10_000, interval: 100 };

beforeAll(async () => {
  ({ stack, upstream, alias, money } = await accountsStack([
    ...rowsOfAccount('mirrored', 100),
    ...rowsOfAccount('storing', 100, { store: true }),
  ]));
});
afterAll(leaveAccountsStack);

const headers = { authorization: `Bearer ${keyOf('mirrored')}` };
const ask = (model: string): object => ({ model, messages: [{ role: 'user', content: 'hi' }] });
const codeOf = async (response: Response): Promise<string> =>
  ((await response.json()) as { error: { code: string } }).error.code;

describe('a channel that points back to the relay', () => {
  it('is stopped one invocation later by its hop header, with a clear error, and nothing is charged', async () => {
    const before = stack.chatProcesses().length;
    const linesBefore = stack.lines.length;
    const response = await stack.post(ask('mirror'), { headers });
    expect([response.status, await codeOf(response)]).toEqual([508, 'relay_loop']);
    expect(alias.passed).toBe(1);
    expect(stack.chatProcesses().length).toBeLessThanOrEqual(before + 2);
    const outer = await stack.logged(response.headers.get('x-request-id') ?? '');
    expect(outer).toMatchObject({ status: 508, reason: 'upstream_loop_508' });
    const inner = stack.lines.slice(linesBefore).filter((line) => line.includes('"endpoint":"edge"'));
    expect(inner).toEqual([expect.stringContaining('"code":"relay_loop"')]);
    await until(async () => (await money.account('mirrored')).open === 0);
    expect(await money.account('mirrored')).toMatchObject({ available: 100 * nano, spent: 0 });
  });

  it('is never called if its address is the relay’s own, and gets a mark on its row', async () => {
    const { documents } = stack.store;
    const TableName = 'relay-channels';
    const Item = { id: 'self', endpoint: `${stack.origin}/v1`, state: true, models: ['self'] };
    await documents.send(new PutCommand({ TableName, Item }));
    const problem = async (): Promise<unknown> =>
      (await documents.send(new GetCommand({ TableName, Key: { id: 'self' } }))).Item?.['_problem'];
    await expect
      .poll(problem, marksWithin)
      .toBe('endpoint: found the address of this relay itself, expected an upstream');
    expect(await codeOf(await stack.post(ask('self'), { headers }))).toBe('model_not_found');
  });
});

describe('a compressed request', () => {
  it('is read in gzip and br, and another encoding is rejected by name', async () => {
    upstream.script(textStream('Hello.'));
    const json = JSON.stringify(ask('plain'));
    const packed = { ...headers, 'content-encoding': 'gzip' };
    const brotli = { ...headers, 'content-encoding': 'br' };
    for (const read of [
      await stack.post(new Uint8Array(gzipSync(json)), { headers: packed }),
      await stack.post(new Uint8Array(brotliCompressSync(json)), { headers: brotli }),
    ])
      expect([read.status, JSON.stringify(await read.json())]).toEqual([
        200,
        expect.stringContaining('Hello.'),
      ]);
    const other = { ...headers, 'content-encoding': 'deflate' };
    const refused = await stack.post(new Uint8Array(gzipSync(json)), { headers: other });
    expect([refused.status, await codeOf(refused)]).toEqual([415, 'unsupported_content_encoding']);
    const bomb = new Uint8Array(gzipSync(Buffer.alloc(64 * 1024 * 1024)));
    const large = await stack.post(bomb, { headers: packed });
    expect([large.status, await codeOf(large)]).toEqual([413, 'request_too_large']);
  });
});

describe('a client that closes its side of the connection', () => {
  const send = (bytes: string): Promise<string> => {
    const socket = connect(Number(new URL(stack.origin).port), '127.0.0.1');
    socket.end(bytes);
    return readText(socket);
  };

  it.each([true, false])('after its request gets the answer (stream: %s)', async (stream) => {
    const gone = Promise.withResolvers<void>();
    upstream.script(async (call, reply) => {
      await gone.promise;
      await textStream('Hello there.')(call, reply);
    });
    upstream.forget();
    const body = JSON.stringify({ ...ask('plain'), stream });
    const answer = send(rawPost(keyOf('mirrored'), { body }));
    await upstream.nextRequest();
    gone.resolve();
    const text = await answer;
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
    expect(text).toContain(stream ? 'data: [DONE]' : 'Hello there.');
  });

  it('within its request is rejected', async () => {
    const whole = rawPost(keyOf('mirrored'), { body: JSON.stringify(ask('plain')) });
    expect(await send(whole.slice(0, -5))).toMatch(/^HTTP\/1\.1 400 /);
  });
});

const postWithKey = (key: string, stream: boolean, content = 'Hello') =>
  stack.post(
    { model: 'plain', stream, messages: [{ role: 'user', content }] },
    { headers: { authorization: `Bearer ${keyOf('storing')}`, 'idempotency-key': key } },
  );

const idOf = ({ headers }: Response): string => headers.get('x-request-id') ?? '';

/** The headers of an answer. */
const ownHeaders = ({ headers }: Response) =>
  Object.fromEntries([...headers].filter(([name]) => /^(content-type|x-relay-.*)$/.test(name)));

describe('a repeat of a key that may store', () => {
  beforeEach(() => {
    upstream.script(textStream('Hello there.'));
    upstream.forget();
  });

  it.each([false, true])('gets the first answer from a new environment, stream: %s', async (stream) => {
    const key = `answered ${stream}`;
    const first = await postWithKey(key, stream);
    const text = await first.text();
    expect(text).toContain('Hello');
    await stack.logged(idOf(first));
    await stack.killProcesses('chat');
    const again = await postWithKey(key, stream);
    expect([again.status, await again.text()]).toEqual([200, text]);
    expect(ownHeaders(again)).toEqual({ ...ownHeaders(first), 'x-relay-replayed': idOf(first) });
    expect(upstream.requests).toHaveLength(1);
  });

  it('is told to wait while the first one runs, then gets its answer', async () => {
    const release = Promise.withResolvers<void>();
    upstream.script(async (call, reply) => {
      await release.promise;
      await textStream('Hello there.')(call, reply);
    });
    const running = postWithKey('running', false);
    await upstream.nextRequest();
    const early = await postWithKey('running', false);
    expect([early.status, early.headers.get('retry-after')]).toEqual([409, '5']);
    release.resolve();
    const first = await running;
    const text = await first.text();
    await stack.logged(idOf(first));
    expect(await (await postWithKey('running', false)).text()).toBe(text);
    const other = await postWithKey('running', false, 'Goodbye');
    expect(other.status).toBe(422);
    expect(await other.json()).toMatchObject({ error: { param: 'messages' } });
    expect(upstream.requests).toHaveLength(1);
  });
});
