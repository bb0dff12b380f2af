import { PutItemCommand, ScanCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { documentClient } from '../support/sdk-tables.ts';
import { createIdempotencyStore } from '../../shared/adapters/dynamodb/idempotency-store.ts';
import type { IdempotencyStore } from '../../shared/relay/ports/runtime-stores.ts';
import { startEmulator, type Emulator } from '../support/emulator.ts';
import { MemoryIdempotency } from '../support/memory-idempotency.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import { hotClient } from '../unit/adapters/dynamodb/store.ts';

/** The contract of the stores in the table `runtime`, for the in-memory stores and the real ones. */
const clock = new VirtualClock();
const nowMs = clock.now();
let emulator: Emulator;
let memory: MemoryIdempotency;
let client: ReturnType<typeof documentClient>;
let idempotency: Record<string, IdempotencyStore>;

beforeAll(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  client = documentClient({ region: 'us-east-1', credentials });
  memory = new MemoryIdempotency(clock);
  idempotency = {
    memory,
    dynamodb: createIdempotencyStore(hotClient(), clock, 'relay'),
  };
});
afterAll(() => emulator.stop());

describe.each(['memory', 'dynamodb'])('the idempotency store in %s', (kind) => {
  const store = (): IdempotencyStore => {
    const found = idempotency[kind];
    if (!found) throw new Error(kind);
    return found;
  };
  const claim = (key: string, requestId: string, more: object = {}) => ({
    owner: 'o',
    idempotencyKey: key,
    requestId,
    account: 'acme',
    body: { a: 1 },
    untilMs: nowMs + 60_000,
    ...more,
  });

  const closed = async (id: string, closedAs: string, account = 'acme'): Promise<void> => {
    memory.closed.set(`${account} ${id}`, closedAs);
    const Item = { account: { S: account }, id: { S: id }, kind: { S: closedAs } };
    await client.send(new PutItemCommand({ TableName: 'relay-ledger', Item }));
  };

  it('gives a key to one of several claimants', async () => {
    const claims = ['1', '2', '3', '4'].map((id) => store().claim(claim('k1', id)));
    const states = (await Promise.all(claims)).map((reply) => reply.state);
    expect(states.toSorted()).toEqual(['claimed', 'running', 'running', 'running']);
  });

  it("distinguishes running, completed and another body, and returns the first request's id", async () => {
    await store().claim(claim('k2', 'first'));
    expect(await store().claim(claim('k2', 'b'))).toEqual({ state: 'running', requestId: 'first' });
    expect(await store().claim(claim('k2', 'b', { body: 2 }))).toEqual({
      state: 'other_body',
      requestId: 'first',
    });
    await store().finish(claim('k2', 'first'), false);
    expect(await store().claim(claim('k2', 'b'))).toEqual({ state: 'completed', requestId: 'first' });
    expect((await store().claim(claim('k2', 'b', { owner: 'other' }))).state).toBe('claimed');
  });

  it('names the first differing member of a body, if the first request stored its members', async () => {
    const sent = (body: object) => ({ body: ['chat', body], namesMembers: true });
    const first = { model: 'm', messages: ['hi'], stream: true };
    await store().claim(claim('named', 'first', sent(first)));
    const repeat = async (body: object) => store().claim(claim('named', 'b', sent(body)));
    const other = { state: 'other_body', requestId: 'first' };
    expect(await repeat(first)).toEqual({ state: 'running', requestId: 'first' });
    expect(await repeat({ ...first, messages: ['ho'] })).toEqual({ ...other, differs: 'messages' });
    expect(await repeat({ model: 'm', messages: ['hi'] })).toEqual({ ...other, differs: 'stream' });
    expect(await repeat({ ...first, extra: 1 })).toEqual({ ...other, differs: 'extra' });
    expect(
      await store().claim(claim('named', 'b', { body: ['responses', first], namesMembers: true })),
    ).toEqual(other);
    const untold = { body: ['chat', { ...first, messages: [] }] };
    expect(await store().claim(claim('named', 'b', untold))).toEqual(other);
  });

  it('releases a key for others, but only for the request that holds it', async () => {
    await store().claim(claim('k3', 'first'));
    await store().finish(claim('k3', 'stranger'), true);
    expect((await store().claim(claim('k3', 'b'))).state).toBe('running');
    await store().finish(claim('k3', 'first'), true);
    expect((await store().claim(claim('k3', 'b'))).state).toBe('claimed');
  });

  it.each(['expired', 'released', 'cancelled'])(
    'gives the key of a request whose call was %s meanwhile to one of several claimants, with any body',
    async (closedAs) => {
      const [key, first] = [`swept ${closedAs}`, `first ${kind} ${closedAs}`];
      await store().claim(claim(key, first));
      await closed(first, closedAs, 'another account');
      expect((await store().claim(claim(key, 'b'))).state).toBe('running');
      await closed(first, closedAs);
      const claims = ['c', 'd', 'e'].map(async (id) => store().claim(claim(key, id, { body: 2 })));
      const states = (await Promise.all(claims)).map((reply) => reply.state);
      expect(states.toSorted()).toEqual(['claimed', 'running', 'running']);
      // If the first request is still alive, it no longer holds the key.
      await store().finish(claim(key, first), true);
      expect((await store().claim(claim(key, 'f', { body: 2 }))).state).toBe('running');
    },
  );

  it('reports a charged request as completed, even when the request itself could not', async () => {
    const requestId = `first ${kind} charged`;
    await store().claim(claim('charged', requestId));
    await closed(requestId, 'settled');
    expect(await store().claim(claim('charged', 'b'))).toEqual({ state: 'completed', requestId });
    expect(await store().claim(claim('charged', 'b', { body: 2 }))).toEqual({
      state: 'other_body',
      requestId,
    });
  });

  it('never runs a charged call again, even long after a request that could not report its end', async () => {
    const requestId = `first ${kind} charged long ago`;
    await store().claim(claim('charged long ago', requestId, { untilMs: nowMs - 5_000 }));
    await closed(requestId, 'settled');
    expect(await store().claim(claim('charged long ago', 'b'))).toEqual({ state: 'completed', requestId });
  });

  it('releases a key whose request can no longer be running', async () => {
    await store().claim(claim('k4', 'first', { untilMs: nowMs - 5_000 }));
    expect((await store().claim(claim('k4', 'b'))).state).toBe('claimed');
  });
});

it('a claim in DynamoDB stores hashes: the row contains neither the key nor a word of the body', async () => {
  const [owner, idempotencyKey] = ['owner-canary', 'key-canary'];
  const body = { model: 'm', messages: [{ role: 'user', content: 'body-canary' }] };
  const claim = { owner, idempotencyKey, requestId: 'secret-free', account: 'acme', body, untilMs: nowMs };
  await idempotency['dynamodb']?.claim(claim);
  const { Items = [] } = await client.send(new ScanCommand({ TableName: 'relay-runtime' }));
  const row = Items.find(({ request }) => request?.S === 'secret-free');
  expect(Object.keys(row ?? {}).toSorted()).toEqual(['body', 'expires', 'id', 'request', 'state', 'until']);
  expect(JSON.stringify(row)).not.toContain('canary');
  const named = {
    ...claim,
    requestId: 'named',
    idempotencyKey: 'other',
    body: ['chat', body],
    namesMembers: true,
  };
  await idempotency['dynamodb']?.claim(named);
  const { Items: rows = [] } = await client.send(new ScanCommand({ TableName: 'relay-runtime' }));
  const kept = rows.find(({ request }) => request?.S === 'named');
  expect(Object.keys(kept?.['members']?.M ?? {}).toSorted()).toEqual(['messages', 'model']);
  expect(JSON.stringify(kept)).not.toContain('canary');
});
