import { once } from 'node:events';
import { createServer, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { emulatorClient, startEmulator } from '../support/emulator.ts';

/** One call that came to the store. */
export interface StoreCall {
  /** `GetItem`, `Scan`, ... */
  action: string;
  table: string | undefined;
}

export interface CountedStore {
  endpoint: string;
  calls: StoreCall[];
  /** Goes around the counting. */
  documents: DynamoDBDocumentClient;
  stop(): Promise<void>;
}

/** The DynamoDB emulator behind a proxy that keeps a list of what was asked of it. */
export async function startCountedStore(): Promise<CountedStore> {
  const emulator = await startEmulator();
  const client = emulatorClient(emulator.endpoint);
  const calls: StoreCall[] = [];
  const server = createServer((request, response) => {
    pass(request, response, new URL(emulator.endpoint), calls).catch(() => response.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    documents: DynamoDBDocumentClient.from(client),
    stop: async () => {
      client.destroy();
      server.close().closeAllConnections();
      await emulator.stop();
    },
  };
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

function tableOf(body: Buffer): string | undefined {
  const { TableName } = JSON.parse(body.toString() || '{}') as { TableName?: string };
  return TableName;
}
