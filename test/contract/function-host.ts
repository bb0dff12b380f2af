import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { LocalFunction } from '../../infra/local/lambda/local-function.ts';
import { splitPrelude, type UrlResponseHead } from '../../infra/local/lambda/function-url.ts';
import { documentClient } from '../support/sdk-tables.ts';
import { physicalNameOf, type TableName } from '../../shared/tables/table-names.ts';
import { startEmulator } from '../support/emulator.ts';

/** The answer of a function, while it streams. */
export interface FunctionAnswer {
  head: UrlResponseHead;
  /** Body text as it arrives; ends when the function ended it. */
  texts: AsyncIterator<string>;
  /** The runtime's connection that carries the answer. */
  connection: Socket;
}

export interface BufferedAnswer extends UrlResponseHead {
  body: string;
}

export interface FunctionHost {
  stream(event: object): Promise<FunctionAnswer>;
  /** The whole answer of a streaming function. */
  streamAll(event: object): Promise<{ head: UrlResponseHead; body: string }>;
  buffered(event: object): Promise<BufferedAnswer>;
  /** Writes a row and publishes the configuration, as the table's stream would trigger it. */
  put(table: TableName, row: Record<string, unknown>): Promise<void>;
  /** All lines that the functions and their host have written so far. */
  lines: string[];
  /** Returns the next matching line, or an earlier one. */
  line(passes: (line: string) => boolean): Promise<string>;
  stop(): Promise<void>;
}

const built = join(import.meta.dirname, '..', '..', 'dist');

/** The functions as `npm run build` writes them, under AWS's own runtime client, on emulated tables. */
export async function startFunctions(timeoutMs = 60_000): Promise<FunctionHost> {
  const emulator = await startEmulator();
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  const lines: string[] = [];
  let wake = Promise.withResolvers<void>();
  const log = (line: string) => {
    lines.push(line);
    wake.resolve();
    wake = Promise.withResolvers<void>();
  };
  const start = (name: string) =>
    new LocalFunction(
      {
        name,
        arn: `arn:aws:lambda:us-east-1:000000000000:function:${name}`,
        folder: join(built, name),
        handler: 'index.handler',
        timeoutMs,
        memoryMegabytes: 256,
        environmentsMax: 1,
        environment: {
          RELAY_STACK: 'relay',
          RELAY_VERSION: 'contract',
          RELAY_LOCAL: '1',
          ORIGIN_SECRETS: 'cloudfront',
          SEAL_KEYS: '{"1":"seal"}',
          AWS_ENDPOINT_URL_DYNAMODB: emulator.endpoint,
          UPSTREAM_KEY: 'sk-canary-upstream',
          RELAY_ENV_SECRETS: 'UPSTREAM_KEY',
        },
      },
      log,
    );
  const functions = { chat: start('chat'), catalog: start('catalog'), config: start('config') };
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  const client = documentClient({ region: 'us-east-1', credentials });
  const stream = (event: object) => invokeStreaming(functions.chat, event);
  return {
    lines,
    stream,
    async streamAll(event) {
      const { head, texts } = await stream(event);
      let body = '';
      for (let next = await texts.next(); !next.done; next = await texts.next()) body += next.value;
      return { head, body };
    },
    buffered: async (event) => (await functions.catalog.call(event)) as BufferedAnswer,
    async put(table, Item) {
      await client.send(new PutCommand({ TableName: physicalNameOf('relay', table), Item }));
      await functions.config.call({ 'detail-type': 'Scheduled Event' });
    },
    async line(passes) {
      for (;;) {
        const found = lines.find(passes);
        if (found !== undefined) return found;
        await wake.promise;
      }
    },
    async stop() {
      client.destroy();
      await Promise.all([...Object.values(functions).map((target) => target.close()), emulator.stop()]);
    },
  };
}

async function invokeStreaming(target: LocalFunction, event: object): Promise<FunctionAnswer> {
  const answered = await target.invoke(event);
  if ('payload' in answered) throw new Error('a streaming function answered in one piece');
  return readHead(answered.body);
}

async function readHead(body: IncomingMessage): Promise<FunctionAnswer> {
  let bytes = Buffer.alloc(0);
  for (;;) {
    const split = splitPrelude(bytes);
    if (split) {
      const { head, rest } = split;
      return { head, texts: textsOf(body, rest), connection: body.socket };
    }
    const chunk = body.read() as Buffer | null;
    if (chunk) bytes = Buffer.concat([bytes, chunk]);
    else await once(body, 'readable');
  }
}

async function* textsOf(body: IncomingMessage, first: Buffer): AsyncGenerator<string, void, undefined> {
  if (first.length > 0) yield first.toString();
  for await (const bytes of body) yield String(bytes);
}
