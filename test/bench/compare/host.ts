/** A process: one Lambda environment behind a Function URL, one call at a time. Says `ready`, then `.` after each call. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { pathToFileURL } from 'node:url';
import { buffer } from 'node:stream/consumers';
import { buildUrlEvent } from '../../../infra/local/lambda/function-url.ts';

interface Head {
  statusCode: number;
  headers: Record<string, string>;
}

// The wrapper of Lambda's runtime for streaming handlers.
Object.assign(globalThis, {
  awslambda: {
    streamifyResponse: (handler: unknown) => handler,
    HttpResponseStream: {
      from: (stream: ServerResponse, { statusCode, headers }: Head) => stream.writeHead(statusCode, headers),
    },
  },
});
const { handler } = (await import(pathToFileURL(process.argv[2] ?? '').href)) as {
  handler: (event: object, stream: ServerResponse, context: object) => Promise<void>;
};
const context = { awsRequestId: 'bench', functionName: 'chat', getRemainingTimeInMillis: () => 600_000 };

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = 'POST', url: target = '/', headers } = request;
  const body = await buffer(request);
  const event = buildUrlEvent(
    { method, target, headers, body, sourceIp: '127.0.0.1', domain: 'bench.local' },
    'bench',
  );
  await handler(event, response, context);
}

let last = Promise.resolve();
createServer((request, response) => {
  last = last
    .then(() => serve(request, response))
    .catch((error: unknown) => {
      console.error(error);
      response.destroy();
    });
}).listen(Number(process.env['PORT']), '127.0.0.1', () => console.error('ready'));
