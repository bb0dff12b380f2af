/** The README's lines for a laptop that sleeps, as they are, on the running stack, over connections that break. */
import { execFile } from 'node:child_process';
import { createServer, connect, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runOps } from '../ops/run-ops.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';
import { fencesOf, root } from './pages.ts';

const run = promisify(execFile);
const answer = 'Hello! You said: "Hello!". I am the demo model of this relay, so this is all I know.';
/** After how many events each connection breaks; the last one does not. */
const cuts = [1, 3, 2, 7];

let stack: LocalStack;
beforeAll(async () => {
  stack = await startLocalStack();
});
afterAll(() => stack?.stop());

const codeWith = (text: string): string =>
  fencesOf('README.md').find(({ code, language }) => language === 'ts' && code.includes(text))?.code ?? '';

/** Passes bytes on, and breaks connections in the middle of their events. */
async function cuttingProxy(target: URL): Promise<{ url: string; broken: number[]; server: Server }> {
  const broken: number[] = [];
  const left = [...cuts];
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    const breaks = left.shift() ?? Infinity;
    let events = 0;
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
    client.pipe(upstream);
    upstream.on('data', (bytes: Buffer) => {
      client.write(bytes);
      events += bytes.toString().split('\ndata: ').length - 1;
      if (events < breaks) return;
      broken.push(events);
      // What was written is on its way; nothing after it is.
      client.end(() => client.destroy());
      upstream.destroy();
    });
    upstream.on('close', () => client.end());
    client.on('close', () => upstream.destroy());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, broken, server };
}

test('a client whose connections break writes each word of the answer once', async () => {
  const tables = { AWS_ENDPOINT_URL_DYNAMODB: stack.dynamodbEndpoint };
  const made = await runOps(['key', 'create', '--account', 'demo', '--store', '--json'], tables);
  const { key } = JSON.parse(made.output) as { key: string };
  const { url, broken, server } = await cuttingProxy(new URL(stack.baseUrl));
  const [opening = ''] = codeWith('new OpenAI(').split('const stream');
  const documentedUrl = 'http://127.0.0.1:8787/v1';
  const code = opening.replaceAll(documentedUrl, url) + codeWith('starting_after');
  expect(code).toContain('background: true');
  const env = { ...process.env, RELAY_KEY: key, NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' };
  const parameters = ['--input-type=module-typescript', '--eval', code];
  const { stdout } = await run(process.execPath, parameters, { cwd: root, env });
  expect(stdout).toBe(answer);
  expect(broken.length).toBeGreaterThan(1);
  server.close();
});
