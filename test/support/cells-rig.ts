/**
 * Doubles of the AWS services of examples/cells: CloudFront with the example's router, its KeyValueStore, and the tables of all cells at one
 * address. The cells are local stacks; operators run the example's own commands.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import {
  Agent,
  createServer,
  request as sendRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { runInNewContext } from 'node:vm';
import { tableNames } from '../../shared/tables/table-schemas.ts';
import { root } from '../docs/pages.ts';
import { runOps } from '../ops/run-ops.ts';

/** Key-value pairs as one edge location has them. */
export type StoredValues = Readonly<Record<string, string>>;

export type Router = (host: string, values: StoredValues) => Promise<string>;

/** Returns the example's function for CloudFront: it maps a host name to the host of a cell, or throws. */
export function loadRouter(hosts: readonly string[]): Router {
  const code = readFileSync(path.join(root, 'examples/cells/router.js'), 'utf8')
    .replaceAll(/^import .*$/gm, '')
    .replace('CELL_HOSTS', hosts.join(','));
  const current = new AsyncLocalStorage<{ values: StoredValues; origin?: string }>();
  const get = async (key: string) => {
    const { values = {} } = current.getStore() ?? {};
    if (!Object.hasOwn(values, key)) throw new Error('key not found');
    return values[key];
  };
  const cf = {
    kvs: () => ({ get }),
    updateRequestOrigin: ({ domainName }: { domainName: string }) =>
      void Object.assign(current.getStore() ?? {}, { origin: domainName }),
  };
  const handle = runInNewContext(`${code}\nhandler`, { cf, crypto: { createHash } }) as (
    event: object,
  ) => Promise<{ headers: Record<string, { value: string }> }>;
  return async (host, values) => {
    // By default CloudFront uses the distribution's origin, the first cell.
    const state = { values, origin: hosts[0] ?? '' };
    const event = { request: { headers: { host: { value: host } } } };
    const request = await current.run(state, () => handle(event));
    if (request.headers['x-forwarded-host']?.value !== host) throw new Error('the host is not forwarded');
    return state.origin;
  };
}

/** The KeyValueStore: edge locations see a write only after `reach`. */
export class EdgeStore {
  readonly #file: string;
  readonly #seen: StoredValues[];

  constructor(folder: string, edges: number) {
    this.#file = path.join(folder, 'store.json');
    writeFileSync(this.#file, JSON.stringify({ etag: 'E1', values: {} }));
    this.#seen = Array.from({ length: edges }, () => ({}));
  }

  get edges(): number {
    return this.#seen.length;
  }

  seenAt = (edge: number): StoredValues => this.#seen[edge] ?? {};

  reach(...edges: number[]): void {
    const { values } = JSON.parse(readFileSync(this.#file, 'utf8')) as { values: StoredValues };
    for (const edge of edges.length > 0 ? edges : this.#seen.keys()) this.#seen[edge] = values;
  }
}

export interface Edge {
  port: number;
  close(): void;
}

const agent = new Agent({ keepAlive: true });

/** CloudFront: every request runs the router at the edge location in `x-edge`, or at a random one. `portOf` finds the stack of a cell's host. */
export async function startEdge(options: {
  store: EdgeStore;
  router: () => Router;
  portOf: (host: string) => number | undefined;
}): Promise<Edge> {
  const { store, router, portOf } = options;
  const server = createServer((request, response) => {
    const { host = '', 'x-edge': at = Math.random() * store.edges } = request.headers;
    const values = store.seenAt(Math.floor(Number(at)));
    const refuse = (status: number): void => {
      if (response.headersSent) response.destroy();
      else response.writeHead(status).end(`CloudFront ${status}`);
    };
    router()(host, values).then(
      (cell) => forward(request, response, { port: portOf(cell), host, refuse }),
      () => refuse(503),
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function forward(
  request: IncomingMessage,
  response: ServerResponse,
  { port, host, refuse }: { port: number | undefined; host: string; refuse: (status: number) => void },
): void {
  if (port === undefined) return refuse(502);
  const headers = { ...request.headers, host: `127.0.0.1:${port}`, 'x-forwarded-host': host };
  const options = { agent, port, host: '127.0.0.1', method: request.method, headers };
  const asked = sendRequest({ ...options, path: `/relay${request.url}` }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
    answer.once('error', () => response.destroy());
  });
  asked.once('error', () => refuse(502));
  request.pipe(asked);
}

export interface Answer {
  status: number;
  text: string;
}

/** Sends a request to a host name at the edge. */
export async function ask(
  edge: Edge,
  host: string,
  {
    path: target,
    key,
    body,
    headers,
  }: { path: string; key?: string; body?: object; headers?: OutgoingHttpHeaders },
): Promise<Answer> {
  const sent = sendRequest({
    agent,
    host: '127.0.0.1',
    port: edge.port,
    path: target,
    method: body ? 'POST' : 'GET',
    headers: {
      host,
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
  });
  sent.end(body && JSON.stringify(body));
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, text: await readText(answer) };
}

/** The tables of all cells at one address, as AWS has them. */
export interface Tables {
  endpoint: string;
  /** From now on every connection breaks. */
  close(): void;
}

const ofCell = new RegExp(`"(cell-[a-z])-(${tableNames.join('|')})"`, 'g');
const ofStack = new RegExp(`"relay-(${tableNames.join('|')})"`, 'g');
const isWrite = /\.(?:Put|Update|Delete|TransactWrite|BatchWrite)Item/;

/** @param done is called after each request, before its reply is sent, so that a test can kill the caller in between */
export async function startTables(
  endpointOf: (cell: string) => string | undefined,
  done: (request: { isWrite: boolean; body: string }) => void = () => {},
): Promise<Tables> {
  let isClosed = false;
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readText(request);
    const cell = [...body.matchAll(ofCell)][0]?.[1] ?? 'cell-a';
    const endpoint = isClosed ? undefined : endpointOf(cell);
    if (endpoint === undefined) return void response.destroy();
    const { authorization = '', 'x-amz-date': date = '', 'x-amz-target': action = '' } = request.headers;
    const reply = await fetch(endpoint, {
      method: 'POST',
      headers: {
        authorization,
        'x-amz-date': String(date),
        'x-amz-target': String(action),
        'content-type': 'application/x-amz-json-1.0',
      },
      body: body.replaceAll(ofCell, '"relay-$2"'),
    });
    const text = (await reply.text()).replaceAll(ofStack, `"${cell}-$1"`);
    done({ isWrite: isWrite.test(String(action)), body });
    response.writeHead(reply.status, { 'content-type': 'application/x-amz-json-1.0' }).end(text);
  };
  const server = createServer((request, response) => {
    if (isClosed) response.destroy();
    else answer(request, response).catch(() => response.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      isClosed = true;
      server.close();
      server.closeAllConnections();
    },
  };
}

/**
 * Writes the commands of the operator's shell into a folder: `node`, `aws` for the store, and `relay-ops`, which runs in this process, because each
 * start of its program takes a second.
 */
export async function writeCommands(folder: string): Promise<{ bin: string; close(): void }> {
  const bin = path.join(folder, 'bin');
  mkdirSync(bin);
  symlinkSync(process.execPath, path.join(bin, 'node'));
  const server = createOpsServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const ops = `exec 3<>/dev/tcp/127.0.0.1/${port}
printf '%s\\0' "$AWS_ENDPOINT_URL_DYNAMODB" "$PWD" "$@" '' >&3
IFS= read -r code <&3 || exit 1
cat <&3
exit "$code"`;
  const commands = {
    'relay-ops': ops,
    npx: `shift 2\n${ops}`,
    aws: `exec '${process.execPath}' '${path.join(bin, 'aws.mjs')}' "$@"`,
  };
  for (const [name, command] of Object.entries(commands)) {
    writeFileSync(path.join(bin, name), `#!/bin/bash\n${command}\n`);
    chmodSync(path.join(bin, name), 0o755);
  }
  writeFileSync(path.join(bin, 'aws.mjs'), storeCommand(path.join(folder, 'store.json')));
  return { bin, close: () => void server.close() };
}

/** A connection sends the address of the tables, the folder and the words of a command, and gets its exit code and output. */
const createOpsServer = () =>
  createTcpServer({ allowHalfOpen: true }, (socket) => {
    let text = '';
    socket.on('error', () => {});
    socket.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      if (!text.endsWith('\0\0')) return;
      const [endpoint = '', working = '', ...words] = text.slice(0, -2).split('\0');
      const files = words.map((word) => (word.endsWith('.json') ? path.join(working, word) : word));
      runOps(files, { AWS_ENDPOINT_URL_DYNAMODB: endpoint }).then(
        ({ code, output, errors }) => socket.end(`${code}\n${output}${code === 0 ? '' : errors}`),
        () => socket.destroy(),
      );
    });
  });

/** AWS's command line, as far as the page uses it. */
const storeCommand = (file: string): string => `import { readFileSync, writeFileSync } from 'node:fs';
const file = ${JSON.stringify(file)};
const [service, verb, ...words] = process.argv.slice(2);
const option = (name) => words[words.indexOf('--' + name) + 1];
const { etag, values } = JSON.parse(readFileSync(file, 'utf8'));
if (service === 'cloudformation') console.log('arn:of:the:store');
else if (option('kvs-arn') !== 'arn:of:the:store') throw new Error('no such store');
else if (verb === 'describe-key-value-store') console.log(etag);
else if (verb !== 'put-key') throw new Error('unknown: ' + verb);
else if (option('if-match') !== etag) throw new Error('ConflictException');
else {
  values[option('key')] = option('value');
  writeFileSync(file, JSON.stringify({ etag: etag + 'x', values }));
}
`;

const run = promisify(execFile);

/** An operator's shell: its folder of commands and its working folder. */
export interface Shell {
  bin: string;
  folder: string;
}

function environmentOf({ bin }: Shell, tables: Tables): Record<string, string> {
  return {
    PATH: `${bin}${path.delimiter}${process.env['PATH']}`,
    AWS_ENDPOINT_URL_DYNAMODB: tables.endpoint,
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    AWS_CONFIG_FILE: '/nonexistent',
    AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
    STORE: 'arn:of:the:store',
  };
}

/** Runs commands of the example's page, and returns what they print. */
export async function runShell(shell: Shell, tables: Tables, script: string): Promise<string> {
  const env = environmentOf(shell, tables);
  const { stdout } = await run('sh', ['-eu', '-c', script], { env, cwd: shell.folder });
  return stdout;
}

/** Runs a command in its own process group. `kill` ends all its processes at once, as a power failure would. */
export function spawnShell(shell: Shell, tables: Tables, script: string) {
  const child = spawn('sh', ['-eu', '-c', script], {
    env: environmentOf(shell, tables),
    cwd: root,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  const closed = once(child, 'close') as Promise<[number | null]>;
  return {
    ended: closed.then(([code]) => ({ code, output })),
    kill: () => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    },
  };
}
