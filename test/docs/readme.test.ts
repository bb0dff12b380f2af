import { execFile } from 'node:child_process';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runOps } from '../ops/run-ops.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';
import { fencesOf, pages, readPage, root } from './pages.ts';

const run = promisify(execFile);
const documentedUrl = 'http://127.0.0.1:8787/v1';
const answer = 'Hello! You said: "Hello!". I am the demo model of this relay, so this is all I know.';

const fences = [...fencesOf('README.md'), ...fencesOf('docs/clients.md')];
const examplesIn = (language: string): string[] =>
  fences
    .filter((fence) => fence.language === language && fence.code.includes(documentedUrl))
    .map(({ code }) => code);
const curls = examplesIn('sh');
const hasCurl = await run('curl', ['--version']).then(
  () => true,
  () => false,
);

let stack: LocalStack;
beforeAll(async () => {
  stack = await startLocalStack();
});
afterAll(() => stack?.stop());

/** Runs an example with the address and the key of this stack, and returns its output. */
async function outputOf(command: string, parameters: string[], example: string): Promise<string> {
  const code = example.replace(/^export RELAY_KEY=.*\n/m, '').replaceAll(documentedUrl, stack.baseUrl);
  const environment = { ...process.env, RELAY_KEY: stack.key, NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' };
  const { stdout } = await run(command, [...parameters, code], { cwd: root, env: environment });
  return stdout;
}

const contentOf = (events: string): string =>
  [...events.matchAll(/^data: (\{.*)$/gm)]
    .map(([, json]) => JSON.parse(String(json)) as { choices: { delta: { content?: string } }[] })
    .map(({ choices }) => choices[0]?.delta.content ?? '')
    .join('');

describe('the examples of the README and of docs/clients.md on the running stack', () => {
  // The tests must also pass on a machine with only Node and npm.
  test.skipIf(!hasCurl)('curl prints a streamed answer, and the models without a key', async () => {
    expect(curls).toHaveLength(2);
    const [streamed, models] = await Promise.all(curls.map((code) => outputOf('sh', ['-c'], code)));
    expect(contentOf(String(streamed))).toBe(answer);
    expect(streamed).toMatch(/data: \[DONE\]\n\n$/);
    expect(JSON.parse(String(models))).toMatchObject({
      object: 'list',
      data: expect.arrayContaining([expect.objectContaining({ id: 'demo-chat' })]),
    });
  });

  test('TypeScript prints the answer', async () => {
    const [example, ...others] = examplesIn('ts');
    expect(others).toEqual([]);
    const parameters = ['--input-type=module-typescript', '--eval'];
    expect(await outputOf(process.execPath, parameters, String(example))).toBe(answer);
  });
});

/** Number of events after which each connection breaks, except the last one. */
const cuts = [1, 3, 2, 7];

const codeWith = (text: string): string =>
  fences.find(({ code, language }) => language === 'ts' && code.includes(text))?.code ?? '';

/** Forwards bytes, and breaks connections between their events. */
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
      // Written bytes are in transit; no later ones follow.
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
  const made = await runOps(['key', 'new', 'demo', 'store=yes', '--json'], tables);
  const { key } = JSON.parse(made.output) as { key: string };
  const { url, broken, server } = await cuttingProxy(new URL(stack.baseUrl));
  const [opening = ''] = codeWith('new OpenAI(').split('const stream');
  const code = opening.replaceAll(documentedUrl, url) + codeWith('starting_after');
  expect(code).toContain('background: true');
  const env = { ...process.env, RELAY_KEY: key, NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' };
  const parameters = ['--input-type=module-typescript', '--eval', code];
  const { stdout } = await run(process.execPath, parameters, { cwd: root, env });
  expect(stdout).toBe(answer);
  expect(broken.length).toBeGreaterThan(1);
  server.close();
});

test('the Python example makes the call of the TypeScript example', () => {
  const [example] = examplesIn('python');
  expect(example).toContain(`base_url="${documentedUrl}", api_key=os.environ["RELAY_KEY"]`);
  expect(example).toMatch(
    /model="demo-chat",\s+stream=True,\s+messages=\[\{"role": "user", "content": "Hello!"\}\]/,
  );
});

describe('the commands of the README', () => {
  const readme = readPage('README.md');
  const { scripts, devDependencies } = JSON.parse(readPage('package.json')) as {
    scripts: Record<string, string>;
    devDependencies: Record<string, string>;
  };

  test('of CDK use the version that the repository pins', () => {
    expect(readme.match(/aws-cdk@[\d.]+/g)).toEqual([`aws-cdk@${devDependencies['aws-cdk']}`]);
  });

  test('of npm exist in package.json, like those of all other pages', () => {
    const text = pages.map(readPage).join('\n');
    const named = [...text.matchAll(/npm (start|test)\b|npm run\s+(?:--?\w+ )*([a-z][a-z:-]*)/g)];
    expect(named.length).toBeGreaterThan(80);
    for (const [, plain, script] of named) expect(scripts).toHaveProperty([String(plain ?? script)]);
  });
});
