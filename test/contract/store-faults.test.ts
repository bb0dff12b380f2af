import { DeleteItemCommand, GetItemCommand } from '@aws-sdk/client-dynamodb';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { runOps } from '../ops/run-ops.ts';
import { nanoYuan, WiredRelay, wiredKey } from '../support/wired-relay.ts';
import { textStream } from '../support/upstream-scripts.ts';
import { keyHash } from '../../shared/wire/ids.ts';

/** How calls behave on a bad day of the store, with the functions' own clients: no part of the SDK is replaced. */
let relay: WiredRelay;
let lines: string[];

const reference = 'secretsmanager:relay/first';
const secrets = { 'relay/first': 'sk-1', 'relay/second': 'sk-2', '/relay/relay/third': 'sk-3' };

beforeEach(async () => {
  relay = await WiredRelay.start(secrets);
  lines = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    lines.push(String(text));
    return true;
  });
  return async () => {
    vi.restoreAllMocks();
    await relay.stop();
  };
});
afterEach(() => relay.store.rules.clear());

const logged = (message: string) => lines.filter((line) => line.includes(`"message":"${message}"`));
const balance = async () => {
  const { available, spent, open, granted } = await relay.account();
  return { available, spent, open: open.size, granted };
};

describe('a call while the store is throttled', () => {
  beforeEach(async () => {
    await relay.compiler.store.put('charges', { id: 1, type: 'times-billing', models: ['m'], output: 1 });
    await relay.publish('main', ['m']);
    await relay.grant(100n);
  });

  test.each([1, 0.5, 0.1])('asks no upstream before its reserve is written, share %s', async (share) => {
    const environment = relay.environment();
    await environment.post();
    const throttled = { fault: { kind: 'throttle' }, tables: ['quotas'], share } as const;
    relay.upstream.script(async (call, reply) => {
      expect((await relay.account()).open.size).toBe(1);
      await textStream('Hello.')(call, reply);
    });
    const calls = share === 1 ? 3 : 15;
    let done = 0;
    for (let call = 0; call < calls; call += 1) {
      // A reserve that is retried for longer than 1.5 s would succeed.
      const id = relay.store.rules.add({ ...throttled, tables: ['quotas'], forMs: 1_700 });
      const { status, headers } = await environment.post();
      relay.store.rules.remove(id);
      if (status === 200) done += 1;
      else expect({ status, headers }).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
    }
    if (share === 1) expect(done).toBe(0);
    else expect(done).toBeGreaterThan(calls / 2);
    expect(relay.store.counts.faults.throttle).toBeGreaterThan(0);
    expect(relay.upstream.requests).toHaveLength(done + 1);
    expect((await environment.post()).status).toBe(200);
    const spent = BigInt(done + 2) * nanoYuan;
    const granted = 100n * nanoYuan;
    expect(await balance()).toEqual({ spent, available: granted - spent, open: 0, granted });
  });

  test('ends for its client, and is settled once the store answers', async () => {
    const environment = relay.environment();
    relay.upstream.script(async (call, reply) => {
      relay.store.rules.add({ fault: { kind: 'throttle' }, tables: ['quotas'], forMs: 1_000 });
      await textStream('Hello.')(call, reply);
    });
    expect(await environment.post()).toMatchObject({
      status: 200,
      text: expect.stringContaining('Hello.') as string,
    });
    expect(relay.store.counts.faults.throttle).toBeGreaterThan(1);
    expect(await balance()).toMatchObject({ spent: nanoYuan, open: 0 });
    expect(logged('settle_lost')).toEqual([]);
  });

  test.each(['throttle', 'hang'])(
    'whose settle meets only %s leaves a log line that the audit replays',
    async (kind) => {
      const environment = relay.environment();
      relay.upstream.script(async (call, reply) => {
        const fault =
          kind === 'hang' ? ({ kind: 'slow', delayMs: 20_000 } as const) : ({ kind: 'throttle' } as const);
        // The host kills the call after 8 s. A settle that retried until then would find a working store.
        relay.store.rules.add({ fault, tables: ['quotas'], forMs: 8_000 });
        await textStream('Hello.')(call, reply);
      });
      expect((await environment.post({}, { deadlineMs: 8_000 })).status).toBe(200);
      const [line = ''] = logged('settle_lost');
      expect(JSON.parse(line)).toMatchObject({ account: 'acme', charge_nano: String(nanoYuan) });
      relay.store.rules.clear();
      const { open } = await relay.account();
      expect(open.size).toBe(1);
      const variables = { AWS_ENDPOINT_URL_DYNAMODB: relay.endpoint };
      const repair = await runOps(['audit', '--wait', '0', '--repair', '-', '--yes'], variables, line);
      expect(repair.errors).toContain('settled');
      expect(await balance()).toMatchObject({ spent: nanoYuan, open: 0, available: 99n * nanoYuan });
    },
  );

  test('is charged once when replies of the store are lost', async () => {
    const environment = relay.environment();
    relay.store.rules.add({ fault: { kind: 'lost_reply' }, tables: ['quotas'], share: 0.4 });
    const answers = [];
    for (let call = 0; call < 12; call += 1) answers.push(await environment.post());
    relay.store.rules.clear();
    expect(answers.map(({ status }) => status).filter((status) => status !== 200 && status !== 503)).toEqual(
      [],
    );
    const done = answers.filter(({ status }) => status === 200).length;
    expect(relay.upstream.requests).toHaveLength(done);
    expect(relay.store.counts.faults.lost_reply).toBeGreaterThan(3);
    expect(await balance()).toMatchObject({ spent: BigInt(done) * nanoYuan });
    expect(logged('settle_lost').concat(logged('reserve_unknown'))).toEqual([]);
  });

  test('is rejected with 503 while the store does not answer, and served right after', async () => {
    const environment = relay.environment();
    await relay.store.refuseConnections(true);
    expect(await environment.post()).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
    await relay.store.refuseConnections(false);
    expect((await environment.post()).status).toBe(200);
    relay.store.rules.add({ fault: { kind: 'throttle' } });
    environment.sleep(3_600_000);
    expect(await environment.post()).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
    relay.store.rules.clear();
    expect((await environment.post()).status).toBe(200);
    expect(relay.upstream.requests).toHaveLength(2);
  });
});

describe('a stale configuration', () => {
  // Longer than a warm call waits (300 ms), and short enough for a busy machine to finish a reserve in its 1.5 s.
  const slowly = { fault: { kind: 'slow', delayMs: 700 } } as const;

  test('does not reject a model that was added while the environment slept, even with a slow store', async () => {
    await relay.publish('main', ['m']);
    const environment = relay.environment();
    expect((await environment.post({ model: 'other' })).status).toBe(404);
    expect((await environment.post()).status).toBe(200);
    await relay.publish('added', ['added']);
    environment.sleep(12_000);
    relay.store.rules.add(slowly);
    expect((await environment.post({ model: 'added' })).status).toBe(200);
    relay.store.rules.clear();
    expect((await environment.post({ model: 'other' })).status).toBe(404);
    // Now with a cold start, and a store that is slow for every call.
    relay.store.rules.add(slowly);
    expect((await relay.environment().post({ model: 'added' })).status).toBe(200);
  });

  test('does not report the relay as closed after it was opened', async () => {
    await relay.publish('main', ['m']);
    await relay.compiler.store.put('settings', { name: 'relay_closed', value: true });
    await relay.compiler.compile();
    const environment = relay.environment();
    expect((await environment.post()).status).toBe(403);
    await relay.compiler.store.put('settings', { name: 'relay_closed', value: false });
    await relay.compiler.compile();
    environment.sleep(12_000);
    relay.store.rules.add(slowly);
    expect((await environment.post()).status).toBe(200);
  });

  test('serves a model added a second ago, and is refreshed at most once a second for unknown models', async () => {
    await relay.publish('main', ['m']);
    const environment = relay.environment();
    await environment.post();
    const reads = () => relay.store.counts.calls['dynamodb.BatchGetItem'] ?? 0;
    const before = reads();
    for (let second = 1; second <= 5; second += 1) {
      environment.sleep(1_000);
      const names = Array.from({ length: 20 }, (_, i) => `invented-${second}-${i}`);
      await Promise.all(names.map((model) => environment.post({ model })));
      expect(reads()).toBe(before + second);
    }
    await relay.publish('main', ['m', 'added']);
    expect((await environment.post({ model: 'added' })).status).toBe(404);
    environment.sleep(1_000);
    expect((await environment.post({ model: 'added' })).status).toBe(200);
  });

  test('is refreshed once for the refusals of one second; a failing store gives 503, not a refusal', async () => {
    await relay.publish('main', ['m']);
    const environment = relay.environment();
    await environment.post();
    const before = relay.store.counts.calls['dynamodb.BatchGetItem'] ?? 0;
    await Promise.all(Array.from({ length: 20 }, () => environment.post({ model: 'other' })));
    expect(relay.store.counts.calls['dynamodb.BatchGetItem']).toBe(before);
    environment.sleep(12_000);
    await Promise.all(Array.from({ length: 20 }, () => environment.post({ model: 'other' })));
    expect(relay.store.counts.calls['dynamodb.BatchGetItem']).toBe(before + 1);
    environment.sleep(12_000);
    relay.store.rules.add({ fault: { kind: 'throttle' }, tables: ['runtime'] });
    const refused = await environment.post({ model: 'other' });
    expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '2' } });
  });

  test('of a key does not reject a model that was allowed meanwhile', async () => {
    const row = { hash: keyHash(wiredKey), account: 'acme', hint: 'sk-...red' };
    await relay.publish('main', ['m', 'more']);
    await relay.compiler.store.put('keys', { ...row, models: ['m'] });
    const environment = relay.environment();
    expect((await environment.post()).status).toBe(200);
    expect((await environment.post({ model: 'more' })).status).toBe(403);
    await relay.compiler.store.put('keys', { ...row, models: ['m', 'more'] });
    environment.sleep(6_000);
    expect((await environment.post({ model: 'more' })).status).toBe(200);
    await relay.compiler.store.put('keys', { ...row, enabled: false });
    environment.sleep(30_000);
    expect((await environment.post()).status).toBe(401);
    await relay.compiler.store.put('keys', row);
    environment.sleep(5_000);
    expect((await environment.post()).status).toBe(200);
  });
});

describe('the secrets of channels', () => {
  test('are read separately by the calls that use them, and cached', async () => {
    await relay.publish('main', ['m'], {
      secret: [reference, 'secretsmanager:relay/second', 'ssm:/relay/relay/third'],
    });
    await relay.publish('spare', ['m'], { secret: 'secretsmanager:relay/second', priority: -1 });
    const environment = relay.environment();
    await environment.post();
    expect([...relay.secrets.reads.values()]).toEqual([1]);
    for (let call = 0; call < 20; call += 1) await environment.post();
    expect(Math.max(...relay.secrets.reads.values())).toBe(1);
  });

  test('serve from the cache while their store is throttled', async () => {
    await relay.publish('main', ['m'], { secret: reference });
    const environment = relay.environment();
    await environment.post();
    relay.secretStore.rules.add({ fault: { kind: 'throttle' } });
    environment.sleep(3_600_000);
    expect((await environment.post()).status).toBe(200);
    expect(relay.secretStore.counts.faults.throttle).toBeGreaterThan(0);
  });

  test('delay a cold start, and a throttled secret store does not count as a channel failure', async () => {
    await relay.publish('main', ['m'], { secret: reference });
    relay.secretStore.rules.add({ fault: { kind: 'throttle' }, times: 3 });
    expect((await relay.environment().post()).status).toBe(200);
    const hits = relay.upstream.requests.length;
    relay.secretStore.rules.add({ fault: { kind: 'throttle' } });
    const cold = relay.environment();
    const refused = await Promise.all([cold.post(), cold.post(), cold.post(), cold.post()]);
    for (const { status, headers, text } of refused) {
      expect(status).toBe(503);
      expect(headers).toMatchObject({ 'retry-after': '2' });
      expect(JSON.parse(text)).toMatchObject({ error: { code: 'unavailable' } });
    }
    expect(relay.upstream.requests).toHaveLength(hits);
    const cooldowns = new GetItemCommand({ TableName: 'relay-runtime', Key: { id: { S: 'cooldowns' } } });
    expect((await relay.direct.send(cooldowns)).Item).toBeUndefined();
    relay.secretStore.rules.clear();
    expect((await cold.post()).status).toBe(200);
  });
});

describe('reads of the configuration', () => {
  /** Returns the read units of one environment since the last count. */
  const unitsOf = (read: () => Promise<unknown>) => async (): Promise<number> => {
    const name = 'BatchGetItem relay-runtime';
    const before = relay.store.units[name] ?? 0;
    await read();
    return (relay.store.units[name] ?? 0) - before;
  };

  test('cost 1,000 environments what docs/operate.md states, idle and after an edit', async () => {
    await relay.publish('main', ['m']);
    const environment = relay.environment();
    await environment.post();
    await relay.direct.send(
      new DeleteItemCommand({ TableName: 'relay-runtime', Key: { id: { S: 'cooldowns' } } }),
    );
    const spent = unitsOf(async () => {
      environment.sleep(8_000);
      await environment.post();
    });
    const atRest = await spent();
    await relay.publish('added', ['added']);
    const afterEdit = await spent();
    expect({ atRest, afterEdit }).toEqual({ atRest: 3, afterEdit: 3.5 });
  });
});
