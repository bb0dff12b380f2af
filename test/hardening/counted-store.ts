import { once } from 'node:events';
import { createServer, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { type Emulator, startEmulator } from '../../infra/local/host/emulator.ts';
import { createTables, emulatorClient } from '../support/emulator.ts';

/** One request to the store. */
export interface StoreCall {
  /** `GetItem`, `Scan`, ... */
  action: string;
  table: string | undefined;
}

/** An emulator with the stack's tables. */
export interface Store {
  endpoint: string;
  newestRecord: Emulator['newestRecord'];
  /** Bypasses the counting. */
  documents: DynamoDBDocumentClient;
  stop(): Promise<void>;
}

export interface CountedStore extends Store {
  calls: StoreCall[];
  /** Answers every request of a function with this from now on. Undefined forwards them to the emulator. */
  failWith(failure: StoreFailure | undefined): void;
}

export interface StoreFailure {
  status: number;
  body: object;
}

export async function startStore(): Promise<Store> {
  const emulator = await startEmulator({ dataFolder: undefined });
  const { endpoint, newestRecord } = emulator;
  const client = emulatorClient(endpoint);
  await createTables(client);
  return {
    endpoint,
    newestRecord,
    documents: DynamoDBDocumentClient.from(client),
    async stop() {
      client.destroy();
      await emulator.stop();
    },
  };
}

/** A store behind a proxy that records its requests. */
export async function startCountedStore(): Promise<CountedStore> {
  const store = await startStore();
  const calls: StoreCall[] = [];
  let failure: StoreFailure | undefined;
  const server = createServer((request, response) => {
    if (failure && !isStreamRead(request)) fail(request, response, failure);
    else pass(request, response, new URL(store.endpoint), calls).catch(() => response.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    ...store,
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    failWith: (next) => {
      failure = next;
    },
    async stop() {
      server.close().closeAllConnections();
      await store.stop();
    },
  };
}

/** The host also reads the tables' streams through this proxy; those requests never fail. */
const isStreamRead = ({ headers }: IncomingMessage): boolean =>
  String(headers['x-amz-target']).startsWith('DynamoDBStreams');

function fail(request: IncomingMessage, response: ServerResponse, { status, body }: StoreFailure): void {
  request.resume();
  response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(body));
}

async function pass(
  request: IncomingMessage,
  response: ServerResponse,
  { hostname, port }: URL,
  calls: StoreCall[],
): Promise<void> {
  const body = await buffer(request);
  const action = String(request.headers['x-amz-target']).split('.')[1] ?? '';
  calls.push({ action, table: tableOf(body) });
  const { method, url, headers } = request;
  const onward = send({ hostname, port, method, path: url, headers }).end(body);
  const [reply] = (await once(onward, 'response')) as [IncomingMessage];
  response.writeHead(reply.statusCode ?? 502, reply.headers).end(await buffer(reply));
}

export function tableOf(body: Buffer): string | undefined {
  const { TableName } = JSON.parse(body.toString() || '{}') as { TableName?: string };
  return TableName;
}
