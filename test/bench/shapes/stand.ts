/** The built server with its tables, an upstream, and three accounts: one that pays, one with balance 0, and a neighbour. */
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { keyHash } from '../../../shared/wire/ids.ts';
import { emulatorClient, startEmulator } from '../../support/emulator.ts';
import { documentsOn } from '../../support/sdk-tables.ts';
import { startProgram } from '../compare/programs.ts';
import { freePort } from '../compare/stand.ts';
import { processorMilliseconds } from '../start-cost.ts';
import type { Order, Sent } from './sender.ts';
import { models, sealSecret, type Sender } from './shapes.ts';
import type { Hold } from './watch-loop.ts';

const root = join(import.meta.dirname, '..', '..', '..');
const origin = 'bench';
const megabyte = 1024 * 1024;
const storedCount = 24;

export const accounts = ['payer', 'pauper', 'neighbour'] as const;
export type Account = (typeof accounts)[number];
export const keyOf = (account: Account): string => `sk-${account}-0123456789abcdef`;

export interface ShapesStand {
  url: string;
  headers: Record<string, string>;
  senders: Record<Exclude<Account, 'neighbour'>, Sender>;
  /** Processor time of all server threads. */
  processorMs(): number;
  /** The longest block since the last question. */
  hold(): Promise<Hold>;
  send(order: Omit<Order, 'url' | 'headers'>): Promise<Sent>;
  stop(): Promise<void>;
}

/** @param force for a busy machine, where a low-priority sender would never run */
export async function startShapesStand(force: boolean): Promise<ShapesStand> {
  const emulator = await startEmulator('relay', { streams: false });
  const stops: (() => Promise<void>)[] = [() => emulator.stop()];
  const stop = async (): Promise<void> => void (await Promise.all(stops.map((each) => each())));
  try {
    const upstream = await startProgram('../shapes/upstream.ts', { port: await freePort() });
    stops.push(() => upstream.stop());
    const documents = await fillTables(emulator.endpoint, `${upstream.url}/v1`);
    const environment = {
      PATH: process.env['PATH'] ?? '',
      NODE_ENV: 'production',
      AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'local',
      AWS_SECRET_ACCESS_KEY: 'local',
      RELAY_STACK: 'relay',
      RELAY_VERSION: 'bench',
      RELAY_LOCAL: '1',
      ORIGIN_SECRETS: origin,
      SEAL_KEYS: JSON.stringify({ 1: sealSecret }),
      UPSTREAM_KEY: 'sk-upstream',
      RELAY_ENV_SECRETS: 'UPSTREAM_KEY',
      RELAY_LISTEN: '127.0.0.1:0',
    };
    await publish(environment);
    const server = spawn(
      process.execPath,
      [
        '--max-old-space-size=900',
        '--import',
        join(import.meta.dirname, 'watch-loop.ts'),
        join(root, 'dist', 'server', 'index.mjs'),
      ],
      { env: environment, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
    );
    const sender = fork(join(import.meta.dirname, 'sender.ts'), force ? ['force'] : []);
    for (const child of [server, sender]) stops.push(() => ended(child));
    const [{ port }] = (await once(server, 'message')) as [{ port: number }];
    const target = {
      url: `http://127.0.0.1:${port}`,
      headers: { 'x-relay-origin': origin },
    };
    const senders = { payer: await storedBy('payer', target), pauper: await storedBy('pauper', target) };
    await documents('quotas', quotaRow('pauper', 0n));
    return {
      ...target,
      senders,
      processorMs: () => processorMilliseconds(String(server.pid)),
      async hold() {
        server.send('hold');
        const [{ hold }] = (await once(server, 'message')) as [{ hold: Hold }];
        return hold;
      },
      async send(order) {
        sender.send({ ...order, ...target });
        const [sent] = (await once(sender, 'message')) as [Sent];
        return sent;
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

async function publish(environment: Record<string, string>): Promise<void> {
  const run = `const { handler } = await import('./dist/config/index.mjs'); await handler({ 'detail-type': 'Scheduled Event' }, {}); process.exit(0);`;
  await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', run], {
    cwd: root,
    env: environment,
  });
}

const quotaRow = (account: Account, available: bigint): object => ({
  account,
  available,
  granted: available,
  spent: 0,
  settled: 0,
  open: {},
  plan: {},
  rate: {},
});

async function fillTables(
  endpoint: string,
  upstream: string,
): Promise<(table: string, row: object) => Promise<unknown>> {
  const documents = documentsOn(emulatorClient(endpoint));
  const put = (table: string, row: object): Promise<unknown> =>
    documents.send(new PutCommand({ TableName: `relay-${table}`, Item: { ...row } }));
  const channel = { endpoint: upstream, state: true, secret: 'env:UPSTREAM_KEY' };
  await put('channels', { id: 'bench', ...channel, models: [models.chat, models.embeddings] });
  await put('channels', { id: 'claude', ...channel, type: 'anthropic', models: [models.messages] });
  const price = { type: 'token-billing', models: Object.values(models), input: 0.001, output: 0.002 };
  await put('charges', { id: 1, ...price });
  for (const account of accounts) {
    await put('keys', { hash: keyHash(keyOf(account)), account, hint: 'sk-...cdef', store: true });
    await put('quotas', quotaRow(account, 10n ** 15n));
  }
  return put;
}

/** Responses of 1 MB, and a conversation of 8 turns of a megabyte. */
async function storedBy(
  account: Account,
  { url, headers }: { url: string; headers: Record<string, string> },
): Promise<Sender> {
  const store = async (previous?: string): Promise<string> => {
    const body = {
      model: models.chat,
      max_output_tokens: 16,
      input: [{ role: 'user', content: 'x'.repeat(megabyte) }],
      ...(previous !== undefined && { previous_response_id: previous }),
    };
    const answer = await fetch(`${url}/v1/responses`, {
      method: 'POST',
      headers: {
        ...headers,
        authorization: `Bearer ${keyOf(account)}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`storing: ${answer.status} ${await answer.text()}`);
    return ((await answer.json()) as { id: string }).id;
  };
  const stored: string[] = [];
  while (stored.length < storedCount) stored.push(await store());
  let conversation = await store();
  for (let turn = 0; turn < 7; turn += 1) conversation = await store(conversation);
  return { account, stored, conversation };
}
