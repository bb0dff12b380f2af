import type { BatchGetItemCommandInput } from '@aws-sdk/client-dynamodb';
import { UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { beforeEach, describe, expect, test } from 'vitest';
import { tablesOn } from '../../../support/sdk-tables.ts';
import { createConfigSource } from '../../../../shared/adapters/dynamodb/runtime-source.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { startEmulator, type Emulator } from '../../../support/emulator.ts';
import { channelRow, deleteRow, startCompiler, type Compiler } from '../../relay/jobs/config-rig.ts';
import { recordedLog, type RecordedLog } from '../telemetry/recorded-log.ts';
import { passTime, steeredClock, type SteeredClock } from '../steered-clock.ts';
import { countedClient, type CountedClient } from './store.ts';

let emulator: Emulator;
let compiler: Compiler;
let store: CountedClient;
let clock: SteeredClock;
let log: RecordedLog;

beforeEach(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  compiler = startCompiler();
  store = countedClient();
  clock = steeredClock();
  log = recordedLog();
  chance = 0;
  return () => emulator.stop();
});

/** The random number that selects the copy of a snapshot. */
let chance: number;
const random = { next: () => chance };
const open = () => createConfigSource({ client: tablesOn(store.client), clock, random, log, stack: 'relay' });

/** Writes channels that serve these models, the first with the highest priority, and publishes them. */
async function publish(...models: string[]): Promise<void> {
  for (const [index, model] of models.entries())
    await compiler.store.put('channels', channelRow({ id: model, models: [model], priority: -index }));
  await compiler.compile();
}

/** Holds the next store calls until they are released. */
function holdReads() {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
  store.client.middlewareStack.add(
    (next) => async (args) => {
      reach();
      await released;
      return next(args);
    },
    { step: 'initialize', name: 'hold' },
  );
  return { reached, release, remove: () => store.client.middlewareStack.remove('hold') };
}

const setOnPointer = (name: string, value: number) =>
  store.client.send(
    new UpdateCommand({
      TableName: 'relay-runtime',
      Key: { id: 'config' },
      UpdateExpression: 'SET #name = :value',
      ExpressionAttributeNames: { '#name': name },
      ExpressionAttributeValues: { ':value': value },
    }),
  );

describe('the published configuration', () => {
  test('is read in one batch, and a new snapshot in a second one', async () => {
    await publish('gpt-4o');
    const config = open();
    expect(await config.current()).toMatchObject({ version: 1, models: ['gpt-4o'] });
    expect(store.calls).toEqual(['BatchGetItem relay-runtime', 'BatchGetItem relay-runtime']);
    clock.advance(8000);
    await config.current();
    expect(store.calls).toHaveLength(3);
    await publish('other', 'gpt-4o');
    clock.advance(8000);
    expect(await config.current()).toMatchObject({ version: 2, models: ['other', 'gpt-4o'] });
    expect(store.calls).toHaveLength(5);
  });

  test('is stored in copies under separate keys; each read draws one, and falls back to the first if it is lost', async () => {
    await publish('gpt-4o');
    await deleteRow(compiler.store, 'runtime', 'snapshot#1#0#7');
    chance = 0.999;
    expect((await open().current()).models).toEqual(['gpt-4o']);
    await deleteRow(compiler.store, 'runtime', 'snapshot#1#0');
    await expect(open().current()).rejects.toThrow(StoreUnavailable);
    chance = 0.5;
    expect((await open().current()).models).toEqual(['gpt-4o']);
  });

  test('is read once for concurrent requests, and not again within 8 seconds', async () => {
    await publish('gpt-4o');
    const config = open();
    await Promise.all([config.current(), config.current()]);
    clock.advance(7999);
    await config.current();
    expect(store.calls).toHaveLength(2);
  });

  test('is refreshed after 8 seconds, with a new time of publishing', async () => {
    await publish('gpt-4o');
    const config = open();
    const before = await config.current();
    expect(before.publishedAt).toBe((await compiler.snapshots.newest())?.publishedAt);
    await deleteRow(compiler.store, 'channels', 'gpt-4o');
    await publish('other');
    clock.advance(8000);
    const after = await config.current();
    expect(after.models).toEqual(['other']);
    expect(after.publishedAt).toBe((await compiler.snapshots.newest())?.publishedAt);
  });

  test('keeps its time of publishing while the contents stay the same', async () => {
    await publish('gpt-4o');
    const config = open();
    const before = await config.current();
    await compiler.store.put('settings', { name: 'contact', value: '' });
    await deleteRow(compiler.store, 'settings', 'contact');
    await compiler.compile();
    clock.advance(8000);
    expect(await config.current()).toBe(before);
  });

  test('is empty until something is published', async () => {
    const config = open();
    const empty = await config.current();
    expect(empty).toMatchObject({ channels: [], models: [], plans: [], charges: [] });
    expect(empty).not.toHaveProperty('version');
    await publish('gpt-4o');
    clock.advance(8000);
    expect((await config.current()).models).toEqual(['gpt-4o']);
  });

  test('is the old one when a read takes longer than 300 ms, and the new one for the next request', async () => {
    await publish('first');
    const config = open();
    const before = await config.current();
    await deleteRow(compiler.store, 'channels', 'first');
    await compiler.compile();
    const { reached, release } = holdReads();
    clock.advance(8000);
    const served = config.current();
    await reached;
    clock.advance(300);
    expect(await served).toBe(before);
    // No request waits twice for one slow read.
    expect(await config.current()).toBe(before);
    release();
    await expect.poll(async () => (await config.current()).models).toEqual([]);
  });

  test('is not taken from a read that began before the environment was frozen', async () => {
    await publish('first');
    const config = open();
    await config.current();
    const { reached, release, remove } = holdReads();
    clock.advance(8000);
    void config.current();
    await reached;
    remove();
    await publish('second');
    clock.advance(60_000);
    expect((await config.current()).models).toContain('second');
    const calls = store.calls.length;
    release();
    await expect.poll(() => store.calls.length).toBeGreaterThanOrEqual(calls);
    expect((await config.current()).models).toContain('second');
  });

  test('keeps serving while the store is unreachable, and each failed read is logged once', async () => {
    await publish('gpt-4o');
    const config = open();
    const before = await config.current();
    await emulator.stop();
    clock.advance(8000);
    expect(await Promise.all([config.current(), config.current()])).toEqual([before, before]);
    expect(log.faults).toEqual([{ requestId: 'config', error: expect.any(StoreUnavailable) as Error }]);
    clock.advance(999);
    expect(await config.current()).toBe(before);
    expect(log.faults).toHaveLength(1);
    clock.advance(1);
    expect(await config.current()).toBe(before);
    expect(log.faults).toHaveLength(2);
  });

  test('keeps serving when its pointer is missing or names a missing snapshot', async () => {
    await publish('gpt-4o');
    const config = open();
    const before = await config.current();
    await setOnPointer('version', 99);
    clock.advance(8000);
    expect(await config.current()).toBe(before);
    expect(log.faults).toMatchObject([{ error: { name: 'SnapshotBroken' } }]);
    await deleteRow(store, 'runtime', 'config');
    clock.advance(8000);
    expect(await config.current()).toBe(before);
  });

  test('stays the last one when the new one has an unknown format', async () => {
    await publish('gpt-4o');
    const config = open();
    const before = await config.current();
    await publish('other');
    await setOnPointer('format', 2);
    clock.advance(8000);
    expect(await config.current()).toBe(before);
    expect(log.events).toEqual([{ name: 'config_format_unknown', fields: { version: 2, format: 2 } }]);
    await expect(passTime(clock, open().current())).rejects.toBeInstanceOf(StoreUnavailable);
  });

  test('is unavailable at a cold start without a store', async () => {
    await emulator.stop();
    const startedMs = clock.now();
    await expect(passTime(clock, open().current())).rejects.toBeInstanceOf(StoreUnavailable);
    expect(clock.now() - startedMs).toBeLessThanOrEqual(8000);
  });

  test('is read again at a cold start until the store answers', async () => {
    await publish('gpt-4o');
    let refused = 0;
    store.client.middlewareStack.add(
      (next) => async (args) => {
        refused += 1;
        if (refused <= 3) throw new StoreUnavailable('throttled');
        return next(args);
      },
      { step: 'initialize', name: 'throttle' },
    );
    expect((await passTime(clock, open().current())).models).toEqual(['gpt-4o']);
  });

  test('is read with eventual consistency, and consistently only when such a read finds nothing', async () => {
    await publish('gpt-4o');
    const reads: (boolean | undefined)[] = [];
    let missed = 0;
    store.client.middlewareStack.add(
      (next) => async (args) => {
        const { RequestItems } = args.input as BatchGetItemCommandInput;
        const { Keys = [], ConsistentRead } = RequestItems?.['relay-runtime'] ?? {};
        // Keys are plain values here, not yet attributes.
        const isPart = JSON.stringify(Keys).includes('snapshot#');
        reads.push(ConsistentRead);
        if (!isPart || ConsistentRead || missed > 0) return next(args);
        missed += 1;
        return { output: { Responses: {}, $metadata: {} }, response: {} };
      },
      { step: 'initialize', name: 'replica' },
    );
    expect((await open().current()).models).toEqual(['gpt-4o']);
    expect(reads).toEqual([true, false, true]);
    expect((await open().current()).models).toEqual(['gpt-4o']);
    expect(reads.slice(3)).toEqual([true, false]);
  });

  test('is unavailable at a cold start when the table is missing, and the log has the reason', async () => {
    const config = createConfigSource({ client: tablesOn(store.client), clock, random, log, stack: 'other' });
    await expect(config.current()).rejects.toBeInstanceOf(StoreUnavailable);
    expect(log.faults).toMatchObject([{ error: { name: 'ResourceNotFoundException' } }]);
  });
});

describe('the cooldowns', () => {
  test('arrive with the configuration, as they were last read', async () => {
    await publish('gpt-4o');
    const view = open();
    await view.current();
    expect(view.cooldowns().item).toBeUndefined();
    await compiler.store.put('runtime', { id: 'cooldowns', 'cool:main': 5 });
    await view.current();
    expect(view.cooldowns().item).toBeUndefined();
    clock.advance(8000);
    await view.current();
    expect(view.cooldowns().item).toEqual({ id: 'cooldowns', 'cool:main': 5 });
  });

  test('are read at once on request', async () => {
    const view = open();
    await view.current();
    await compiler.store.put('runtime', { id: 'cooldowns', 'cool:main': 5 });
    await view.refresh();
    expect(view.cooldowns().item).toMatchObject({ 'cool:main': 5 });
  });
});
