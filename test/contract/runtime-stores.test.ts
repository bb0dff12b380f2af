import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DynamoChannelHealth } from '../../shared/adapters/dynamodb/dynamo-channel-health.ts';
import { documentClient } from '../../shared/adapters/dynamodb/dynamo-client.ts';
import { dynamoIdempotencyStore } from '../../shared/adapters/dynamodb/dynamo-idempotency-store.ts';
import type { ChannelHealth } from '../../shared/relay/ports/stores/channel-health.ts';
import type { IdempotencyStore } from '../../shared/relay/ports/stores/idempotency-store.ts';
import { startEmulator, type Emulator } from '../support/emulator.ts';
import { MemoryHealth } from '../support/memory-health.ts';
import { MemoryIdempotency } from '../support/memory-idempotency.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

/** What the stores of the table `runtime` promise: the stand-ins of unit tests and the real ones alike. */
const clock = new VirtualClock();
const nowMs = clock.now();
let emulator: Emulator;
let health: Record<string, ChannelHealth>;
let memory: MemoryIdempotency;
let client: ReturnType<typeof documentClient>;
let idempotency: Record<string, IdempotencyStore>;

beforeAll(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  client = documentClient({ region: 'us-east-1', credentials });
  health = {
    memory: new MemoryHealth(),
    dynamodb: new DynamoChannelHealth({ client, clock, stack: 'relay', cooldowns: () => undefined }),
  };
  memory = new MemoryIdempotency(clock);
  idempotency = {
    memory,
    dynamodb: dynamoIdempotencyStore(client, clock, 'relay'),
  };
});
afterAll(() => emulator.stop());

describe.each(['memory', 'dynamodb'])('channel health in %s', (kind) => {
  const store = (): ChannelHealth => {
    const found = health[kind];
    if (!found) throw new Error(kind);
    return found;
  };

  it('counts failures in a row, and forgets them on recovery', async () => {
    expect(await store().countFailure('a|x')).toBe(1);
    expect(await store().countFailure('a|x')).toBe(2);
    expect(store().of('a|x')?.failures).toBe(2);
    await store().recover('a|x', nowMs);
    expect(store().of('a|x')).toBeUndefined();
    expect(await store().countFailure('a|x')).toBe(1);
  });

  it('starts a cooldown, and does not shorten one', async () => {
    await store().cool('b', nowMs + 50);
    await store().cool('b', nowMs + 20);
    expect(store().of('b')?.coolUntilMs).toBe(nowMs + 50);
    await store().recover('b', nowMs + 49);
    expect(store().of('b')?.coolUntilMs).toBe(nowMs + 50);
    await store().recover('b', nowMs + 50);
    expect(store().of('b')).toBeUndefined();
  });

  it('gives the probe of a candidate to one, when its cooldown is over', async () => {
    await store().cool('c', nowMs + 50);
    expect(await store().claimProbe('c', nowMs + 49, nowMs + 99)).toBe(false);
    const claims = [1, 2, 3].map(() => store().claimProbe('c', nowMs + 50, nowMs + 99));
    expect((await Promise.all(claims)).filter(Boolean)).toHaveLength(1);
    expect(await store().claimProbe('c', nowMs + 100, nowMs + 199)).toBe(true);
    expect(await store().claimProbe('never-cooled', nowMs, nowMs + 1)).toBe(false);
  });
});

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

  it('gives a key to one of many', async () => {
    const claims = ['1', '2', '3', '4'].map((id) => store().claim(claim('k1', id)));
    const states = (await Promise.all(claims)).map((reply) => reply.state);
    expect(states.toSorted()).toEqual(['claimed', 'running', 'running', 'running']);
  });

  it('tells running, completed and another body apart, with the first id', async () => {
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

  it('frees a key for others, but only by the request that has it', async () => {
    await store().claim(claim('k3', 'first'));
    await store().finish(claim('k3', 'stranger'), true);
    expect((await store().claim(claim('k3', 'b'))).state).toBe('running');
    await store().finish(claim('k3', 'first'), true);
    expect((await store().claim(claim('k3', 'b'))).state).toBe('claimed');
  });

  it.each(['expired', 'released', 'cancelled'])(
    'gives the key of a request whose call was %s meanwhile to one of many, with whatever body',
    async (closedAs) => {
      const [key, first] = [`swept ${closedAs}`, `first ${kind} ${closedAs}`];
      await store().claim(claim(key, first));
      await closed(first, closedAs, 'another account');
      expect((await store().claim(claim(key, 'b'))).state).toBe('running');
      await closed(first, closedAs);
      const claims = ['c', 'd', 'e'].map(async (id) => store().claim(claim(key, id, { body: 2 })));
      const states = (await Promise.all(claims)).map((reply) => reply.state);
      expect(states.toSorted()).toEqual(['claimed', 'running', 'running']);
      // The first one, if it lives after all, no longer has the key.
      await store().finish(claim(key, first), true);
      expect((await store().claim(claim(key, 'f', { body: 2 }))).state).toBe('running');
    },
  );

  it('says of a request that was charged that it is completed, also when it could not say so itself', async () => {
    const requestId = `first ${kind} charged`;
    await store().claim(claim('charged', requestId));
    await closed(requestId, 'settled');
    expect(await store().claim(claim('charged', 'b'))).toEqual({ state: 'completed', requestId });
    expect(await store().claim(claim('charged', 'b', { body: 2 }))).toEqual({
      state: 'other_body',
      requestId,
    });
  });

  it('frees a key whose request can no longer be running', async () => {
    await store().claim(claim('k4', 'first', { untilMs: nowMs - 5_000 }));
    expect((await store().claim(claim('k4', 'b'))).state).toBe('claimed');
  });
});
