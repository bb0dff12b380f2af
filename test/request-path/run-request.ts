/** One streamed request through the chat function in a fresh process: which files it enters, in which order. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { documentsOn } from '../support/sdk-tables.ts';
import { keyHash } from '../../shared/wire/ids.ts';
import { emulatorClient, startEmulator } from '../support/emulator.ts';
import { delta, done, finish, usage } from '../support/core-rig.ts';
import { urlEvent } from '../unit/adapters/lambda/url-event.ts';

export interface EnteredFiles {
  /** The files that a warm request enters, in the order in which a request enters them first. */
  ordered: string[];
  /** Those of them that are not in the order, because the composition had entered them before. */
  enteredBefore: string[];
  /** What the client got. */
  text: string;
}

export const key = 'sk-request-path';
const secretVariable = 'REQUEST_PATH_KEY';

/** @param root the checkout whose functions are run, against emulated tables and an upstream on loopback. */
export async function runRequest(root: string): Promise<EnteredFiles> {
  const upstream = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end([delta('Hel'), delta('lo'), finish(), usage(7, 2), done].join(''));
    });
  });
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  const emulator = await startEmulator();
  const folder = mkdtempSync(path.join(tmpdir(), 'relay-request-path-'));
  try {
    const { port } = upstream.address() as AddressInfo;
    await putRows(emulator.endpoint, `http://127.0.0.1:${port}/v1`);
    const environment = environmentOf(emulator.endpoint);
    const log = path.join(folder, 'v8.log');
    await run(root, ['--input-type=module', '--eval', publishOnce], environment);
    const v8 = ['--log-function-events', '--no-logfile-per-isolate', `--logfile=${log}`];
    const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] });
    const headers = { authorization: `Bearer ${key}`, 'x-relay-origin': 'distribution' };
    const event = urlEvent({ headers, body });
    const program = path.join(import.meta.dirname, 'streamed-request.ts');
    const printed = await run(root, [...v8, program, JSON.stringify({ root, event })], environment);
    const { entered, text } = JSON.parse(printed.split('\n').at(-1) ?? '') as {
      entered: string[];
      text: string;
    };
    const order = orderIn(readFileSync(log, 'utf8'), root);
    const ordered = order.filter((file) => entered.includes(file));
    return { ordered, enteredBefore: entered.filter((file) => !order.includes(file)), text };
  } finally {
    rmSync(folder, { recursive: true });
    upstream.close().closeAllConnections();
    await emulator.stop();
  }
}

/** Publishes the configuration as the schedule would. */
const publishOnce = `const { handler } = await import('./functions/config.ts'); await handler({ 'detail-type': 'Scheduled Event' }, {});`;

export const environmentOf = (endpoint: string): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'local',
  AWS_SECRET_ACCESS_KEY: 'local',
  AWS_ENDPOINT_URL_DYNAMODB: endpoint,
  RELAY_STACK: 'relay',
  RELAY_VERSION: 'path',
  RELAY_LOCAL: '1',
  ORIGIN_SECRETS: 'distribution',
  SEAL_KEYS: '{"1":"seal"}',
  RELAY_ENV_SECRETS: secretVariable,
  [secretVariable]: 'sk-upstream',
});

async function run(root: string, parameters: string[], env: NodeJS.ProcessEnv): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, parameters, { cwd: root, env });
  return stdout;
}

export async function putRows(endpoint: string, upstream: string): Promise<void> {
  const client = emulatorClient(endpoint);
  const documents = documentsOn(client);
  const put = (table: string, Item: object) =>
    documents.send(new PutCommand({ TableName: `relay-${table}`, Item: Item as Record<string, unknown> }));
  const channel = { id: 'main', endpoint: upstream, models: ['m'], state: true };
  await put('channels', { ...channel, secret: `env:${secretVariable}` });
  await put('charges', { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2 });
  await put('keys', { hash: keyHash(key), account: 'acme', hint: 'sk-...path' });
  const money = { available: 100_000_000_000n, granted: 100_000_000_000n, spent: 0n, settled: 0 };
  await put('quotas', { account: 'acme', ...money, open: {}, plan: {}, rate: {} });
  client.destroy();
}

/** V8 compiles a function when it is first called: the product's files in that order, between the two markers. */
function orderIn(log: string, root: string): string[] {
  const lines = log.split('\n');
  const urls = new Map<string, string>();
  for (const line of lines) {
    const [kind, id = '', url = ''] = line.split(',');
    if (kind === 'script-details') urls.set(id, url);
  }
  const compiled = lines.filter((line) => line.startsWith('function,interpreter,'));
  const start = compiled.findIndex((line) => line.endsWith(',requestStarts'));
  const end = compiled.findIndex((line) => line.endsWith(',requestEnded'));
  const files = compiled
    .slice(start, end)
    .map((line) => urls.get(line.split(',')[2] ?? '')?.split(`${root}/`)[1] ?? '');
  return [...new Set(files.filter((file) => /^(shared|functions)\//.test(file)))];
}
