/** The environment of a relay: tables without streams, rows, a published configuration, an account with a balance. */
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CreateTableCommand } from '@aws-sdk/client-dynamodb';
import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { documentsOn } from '../../support/sdk-tables.ts';
import { keyHash } from '../../../shared/wire/ids.ts';
import { emulatorClient, startEmulator } from '../../support/emulator.ts';
import { startProgram, type Program } from './programs.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const key = 'sk-bench-0123456789abcdef';
const origin = 'bench';

export interface Target {
  name: 'direct' | 'pipe' | 'floor' | 'relay';
  url: string;
  headers: Record<string, string>;
  /** Undefined if nothing is in front of the upstream. */
  program?: Program;
}

export interface Stand {
  targets: Target[];
  stop(): Promise<void>;
}

export async function startStand(): Promise<Stand> {
  // The emulator's writes get slower with every stream record; DynamoDB's do not.
  const emulator = await startEmulator('relay', { streams: false });
  const programs: Program[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(programs.map((program) => program.stop()));
    await emulator.stop();
  };
  const start = async (
    file: string,
    parameters: string[] = [],
    environment: Record<string, string> = {},
  ): Promise<Program> => {
    const program = await startProgram(file, { port: await freePort(), parameters, environment });
    programs.push(program);
    return program;
  };
  try {
    const upstream = await start('upstream.ts');
    await fillTables(emulator.endpoint, `${upstream.url}/v1`);
    const environment = environmentOf(emulator.endpoint, upstream.url);
    const publish = `const { handler } = await import('./dist/config/index.mjs'); await handler({ 'detail-type': 'Scheduled Event' }, {}); process.exit(0);`;
    await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', publish], {
      cwd: root,
      env: environment,
    });
    const pipe = await start('pipe.ts', [], environment);
    const floor = await start('host.ts', [join(import.meta.dirname, 'floor.ts')], environment);
    const relay = await start('host.ts', [join(root, 'dist', 'chat', 'index.mjs')], environment);
    const targets: Target[] = [
      { name: 'direct', url: upstream.url, headers: {} },
      { name: 'pipe', url: pipe.url, headers: {}, program: pipe },
      { name: 'floor', url: floor.url, headers: {}, program: floor },
      { name: 'relay', url: relay.url, headers: relayHeaders, program: relay },
    ];
    return { targets, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const environmentOf = (tables: string, upstream: string): Record<string, string> => ({
  AWS_ENDPOINT_URL_DYNAMODB: tables,
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'local',
  AWS_SECRET_ACCESS_KEY: 'local',
  RELAY_STACK: 'relay',
  RELAY_VERSION: 'bench',
  RELAY_LOCAL: '1',
  ORIGIN_SECRETS: origin,
  SEAL_KEYS: '{"1":"seal"}',
  UPSTREAM_KEY: 'sk-upstream',
  RELAY_ENV_SECRETS: 'UPSTREAM_KEY',
  UPSTREAM: upstream,
});

const relayHeaders = { authorization: `Bearer ${key}`, 'x-relay-origin': origin };

async function fillTables(endpoint: string, upstream: string): Promise<void> {
  const client = emulatorClient(endpoint);
  const documents = documentsOn(client);
  await client.send(
    new CreateTableCommand({
      TableName: 'floor',
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: [{ AttributeName: 'id', AttributeType: 'S' }],
      KeySchema: [{ AttributeName: 'id', KeyType: 'HASH' }],
    }),
  );
  const put = (TableName: string, Item: Record<string, unknown>): Promise<unknown> =>
    documents.send(new PutCommand({ TableName, Item }));
  await put('floor', { id: 'account', enabled: true, quota: 1e15, used: 0, models: new Set(['bench']) });
  const channel = {
    id: 'bench',
    endpoint: upstream,
    models: ['bench'],
    state: true,
    secret: 'env:UPSTREAM_KEY',
  };
  await put('relay-channels', channel);
  await put('relay-charges', {
    id: 1,
    type: 'token-billing',
    models: ['bench'],
    input: 0.001,
    output: 0.002,
  });
  await put('relay-keys', { hash: keyHash(key), account: 'bench', hint: 'sk-...ench' });
  const money = { available: 10n ** 15n, granted: 10n ** 15n, spent: 0, settled: 0 };
  await put('relay-quotas', { account: 'bench', ...money, open: {}, plan: {}, rate: {} });
  client.destroy();
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
