import {
  GetItemCommand,
  PutItemCommand,
  BatchGetItemCommand,
  DynamoDBClient,
} from '@aws-sdk/client-dynamodb';
import { GetSecretValueCommand, SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  startFaultProxy,
  type FaultProxy,
  startSecretDouble,
  type SecretDouble,
} from '../support/fault-proxy.ts';
import { emulatorClient, startEmulator, type Emulator } from '../support/emulator.ts';

let emulator: Emulator;
let direct: DynamoDBClient;
let secrets: SecretDouble;
let store: FaultProxy;
let secretStore: FaultProxy;
let client: DynamoDBClient;

const once = {
  region: 'us-east-1',
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  maxAttempts: 1,
};
const put = (id: string) => new PutItemCommand({ TableName: 'relay-runtime', Item: { id: { S: id } } });
const get = (id: string) => new GetItemCommand({ TableName: 'relay-runtime', Key: { id: { S: id } } });
const nameOf = (error: unknown): string => (error as Error).name;

beforeAll(async () => {
  [emulator, secrets] = await Promise.all([startEmulator(), startSecretDouble({ 'relay/openai': 'sk-1' })]);
  direct = emulatorClient(emulator.endpoint);
  store = await startFaultProxy({ upstream: emulator.endpoint, seed: 7, countUnits: true });
  secretStore = await startFaultProxy({ upstream: secrets.endpoint });
  client = new DynamoDBClient({ ...once, endpoint: store.endpoint });
});

afterAll(async () => {
  client.destroy();
  direct.destroy();
  await Promise.all([store.close(), secretStore.close(), secrets.close()]);
  await emulator.stop();
});

beforeEach(() => store.rules.clear());

/** By a client without a connection of before. */
async function expectRefused(): Promise<void> {
  const newClient = new DynamoDBClient({ ...once, endpoint: store.endpoint });
  await expect(newClient.send(get('lost'))).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  newClient.destroy();
}

describe('a fault proxy before the store', () => {
  it('throttles a share of the calls to one table, by the name that the client library knows', async () => {
    store.rules.add({
      fault: { kind: 'throttle' },
      share: 0.5,
      tables: ['runtime'],
      operations: ['PutItem'],
    });
    const outcomes: string[] = [];
    for (let call = 0; call < 200; call += 1)
      outcomes.push(await client.send(put(`share${call}`)).then(() => 'written', nameOf));
    const throttled = outcomes.filter((name) => name === 'ProvisionedThroughputExceededException').length;
    expect(throttled).toBeGreaterThan(80);
    expect(throttled).toBeLessThan(120);
    expect(throttled + outcomes.filter((name) => name === 'written').length).toBe(200);
    expect(store.counts.faultsByOperation['throttle dynamodb.PutItem']).toBe(throttled);
    expect((await client.send(get('share0'))).$metadata.httpStatusCode).toBe(200);
  });

  it('applies a call whose reply it loses, and does not apply one on which it hangs up', async () => {
    store.rules.add({ fault: { kind: 'lost_reply' }, times: 1 });
    await expect(client.send(put('lost'))).rejects.toThrow('hang up');
    store.rules.add({ fault: { kind: 'hang_up' }, times: 1 });
    await expect(client.send(put('unheard'))).rejects.toThrow('hang up');
    expect((await direct.send(get('lost'))).Item).toBeDefined();
    expect((await direct.send(get('unheard'))).Item).toBeUndefined();
  });

  it('applies a slow call also when its client has gone', async () => {
    store.rules.add({ fault: { kind: 'slow', delayMs: 1000 }, times: 1 });
    await expect(client.send(put('slow'), { abortSignal: AbortSignal.timeout(400) })).rejects.toThrow(
      'abort',
    );
    const found = async () => (await direct.send(get('slow'))).Item;
    await expect.poll(found, { timeout: 15_000 }).toBeDefined();
  });

  it('leaves all keys of a batch unprocessed, and answers 500', async () => {
    const batch = new BatchGetItemCommand({
      RequestItems: { 'relay-runtime': { Keys: [{ id: { S: 'lost' } }] } },
    });
    store.rules.add({ fault: { kind: 'unprocessed' }, times: 1 });
    const { UnprocessedKeys } = await client.send(batch);
    expect(UnprocessedKeys?.['relay-runtime']?.Keys).toHaveLength(1);
    store.rules.add({ fault: { kind: 'error' }, times: 1 });
    expect(await client.send(batch).catch(nameOf)).toBe('InternalServerError');
  });

  it('refuses connections until it is set to accept them', async () => {
    await store.refuseConnections(true);
    await expectRefused();
    await store.refuseConnections(false);
    // Connections that were cut are found dead by the first call.
    await client.send(get('lost')).catch(() => {});
    expect((await client.send(get('lost'))).Item).toBeDefined();
  });

  it('counts the capacity units of calls: half as many for a read that may be old', async () => {
    const name = 'GetItem relay-runtime';
    const before = store.units[name] ?? 0;
    await client.send(get('lost'));
    const old = (store.units[name] ?? 0) - before;
    await client.send(new GetItemCommand({ ...get('lost').input, ConsistentRead: true }));
    expect([old, (store.units[name] ?? 0) - before]).toEqual([0.5, 1.5]);
  });

  it('is driven by another process', async () => {
    const ask = (path: string, method: string, body?: object) =>
      fetch(`${store.controlEndpoint}/${path}`, { method, ...(body && { body: JSON.stringify(body) }) });
    const { id } = (await (await ask('rules', 'POST', { fault: { kind: 'throttle' } })).json()) as {
      id: number;
    };
    expect(await client.send(get('lost')).catch(nameOf)).toBe('ProvisionedThroughputExceededException');
    await ask(`rules/${id}`, 'DELETE');
    expect((await client.send(get('lost'))).Item).toBeDefined();
    await ask('connections', 'POST', { refused: true });
    await expectRefused();
    await ask('connections', 'POST', { refused: false });
    await client.send(get('lost')).catch(() => {});
    const counts = (await (await ask('counts', 'GET')).json()) as FaultProxy['counts'];
    expect(counts.faults.refused_connection).toBeGreaterThan(0);
    expect((await ask('elsewhere', 'GET')).status).toBe(404);
  });
});

it('a fault proxy before the secret stores throttles reads, which the double counts by name', async () => {
  const managed = new SecretsManagerClient({ ...once, endpoint: secretStore.endpoint });
  const read = new GetSecretValueCommand({ SecretId: 'relay/openai' });
  expect((await managed.send(read)).SecretString).toBe('sk-1');
  secretStore.rules.add({ fault: { kind: 'throttle' }, tables: ['relay/openai'], times: 1 });
  expect(await managed.send(read).catch(nameOf)).toBe('ThrottlingException');
  const absent = new GetSecretValueCommand({ SecretId: 'relay/absent' });
  expect(await managed.send(absent).catch(nameOf)).toBe('ResourceNotFoundException');
  expect(secrets.reads).toEqual(
    new Map([
      ['relay/openai', 1],
      ['relay/absent', 1],
    ]),
  );
  managed.destroy();
});
