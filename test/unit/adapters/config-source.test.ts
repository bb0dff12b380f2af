import { DeleteCommand } from '@aws-sdk/lib-dynamodb';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { scannedConfig } from '../../../shared/adapters/config-source.ts';
import { StoreUnavailable } from '../../../shared/relay/ports.ts';
import { startEmulator, type Emulator } from '../../support/emulator.ts';
import { recordedLog, type RecordedLog } from './recorded-log.ts';
import { steeredClock, type SteeredClock } from './steered-clock.ts';
import { countedClient, type CountedClient } from './store.ts';

let emulator: Emulator;
let store: CountedClient;
let clock: SteeredClock;
let log: RecordedLog;

beforeEach(async () => {
  emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  store = countedClient();
  clock = steeredClock();
  log = recordedLog();
  await store.put('channels', channel('first', ['gpt-4o']));
});
afterEach(() => emulator.stop());

const channel = (id: string, models: string[], more: Record<string, unknown> = {}) => ({
  id,
  endpoint: 'https://api.example.com/v1',
  models,
  state: true,
  ...more,
});
const open = () => scannedConfig({ client: store.client, clock, log, stack: 'relay', local: false });

/** Holds the next scans back until released. */
function holdScans() {
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
  return { reached, release };
}

describe('the configuration read from the tables', () => {
  test('holds all four tables, read consistently', async () => {
    await store.put('charges', { id: 1, type: 'token-billing', models: ['gpt-4o'], input: 1, output: 2 });
    await store.put('plans', { level: 1, price: 10, items: [] });
    await store.put('settings', { name: 'contact', value: 'ops@example.com' });
    const snapshot = await open().current();
    expect(snapshot.models).toEqual(['gpt-4o']);
    expect(snapshot.charges).toHaveLength(1);
    expect(snapshot.plans).toHaveLength(1);
    expect(snapshot.settings.contact).toBe('ops@example.com');
    expect(snapshot.publishedAt).toBe(clock.now() / 1000);
    expect(store.calls.toSorted()).toEqual([
      'Scan relay-channels',
      'Scan relay-charges',
      'Scan relay-plans',
      'Scan relay-settings',
    ]);
  });

  test('is complete when a table is larger than one page of a scan', async () => {
    const note = 'x'.repeat(390_000);
    await Promise.all(
      ['a', 'b', 'c', 'd'].map((id) => store.put('channels', channel(id, [id], { _note: note }))),
    );
    expect((await open().current()).models).toEqual(['a', 'b', 'c', 'd', 'gpt-4o']);
    expect(store.calls.filter((call) => call === 'Scan relay-channels').length).toBeGreaterThan(1);
  });

  test('is read once for concurrent requests, and not again within 8 seconds', async () => {
    const config = open();
    await Promise.all([config.current(), config.current()]);
    clock.advance(7999);
    await config.current();
    expect(store.calls).toHaveLength(4);
  });

  test('is the new one after 8 seconds, with a new time of publishing', async () => {
    const config = open();
    const before = await config.current();
    await store.put('channels', channel('second', ['other'], { priority: 5 }));
    clock.advance(8000);
    const after = await config.current();
    expect(after.models).toEqual(['other', 'gpt-4o']);
    expect(after.publishedAt).toBe(before.publishedAt + 8);
  });

  test('keeps its time of publishing while the contents stay the same', async () => {
    const config = open();
    const before = await config.current();
    await store.put('channels', channel('first', ['gpt-4o'], { _note: 'seen' }));
    clock.advance(8000);
    expect(await config.current()).toBe(before);
    expect(store.calls).toHaveLength(8);
    clock.advance(7999);
    await config.current();
    expect(store.calls).toHaveLength(8);
  });

  test('serves the older one when the read takes longer than 300 ms, and the new one to the next request', async () => {
    const config = open();
    const before = await config.current();
    await store.client.send(new DeleteCommand({ TableName: 'relay-channels', Key: { id: 'first' } }));
    const { reached, release } = holdScans();
    clock.advance(8000);
    const served = config.current();
    await reached;
    clock.advance(300);
    expect(await served).toBe(before);
    const next = config.current();
    release();
    expect((await next).models).toEqual([]);
    expect(clock.sleeping()).toBe(0);
  });

  test('serves on with the older one while the store cannot be reached, and says so in the log', async () => {
    const config = open();
    const before = await config.current();
    await emulator.stop();
    clock.advance(8000);
    expect(await config.current()).toBe(before);
    expect(log.faults).toEqual([{ requestId: 'config', error: expect.any(StoreUnavailable) }]);
  });

  test('is unavailable at a cold start without a store', async () => {
    await emulator.stop();
    await expect(open().current()).rejects.toBeInstanceOf(StoreUnavailable);
  });

  test('is unavailable when a table is missing, and the log has the reason', async () => {
    const config = scannedConfig({ client: store.client, clock, log, stack: 'other', local: false });
    await expect(config.current()).rejects.toBeInstanceOf(StoreUnavailable);
    expect(log.faults).toMatchObject([{ error: { name: 'ResourceNotFoundException' } }]);
  });
});
