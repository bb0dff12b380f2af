import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { Reply } from './upstream-reply.ts';
import { textStream } from './upstream-scripts.ts';

/** One call as the upstream received it. */
export interface UpstreamCall {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** The caller's port, which identifies the sending process. */
  remotePort: number | undefined;
  /** The body as received, and parsed (empty for invalid JSON). */
  text: string;
  body: Record<string, unknown>;
  /** The end of the exchange: the script finished its answer, or the relay hung up (or the script reset) before. */
  closed: Promise<'finished' | 'cut'>;
}

export type Script = (call: UpstreamCall, reply: Reply) => void | Promise<void>;

export interface ScriptedUpstream {
  /** The `endpoint` for a channel row. */
  endpoint: string;
  /** All calls so far, oldest first. */
  requests: UpstreamCall[];
  /** Sets the answer to all later calls. The default is a short text stream. */
  script(script: Script): void;
  /** Returns the oldest call that this has not yet returned, or waits for the next one. */
  nextRequest(): Promise<UpstreamCall>;
  /** Forgets all calls so far. */
  forget(): void;
  /** Closes all connections and stops listening. */
  close(): Promise<void>;
}

/** An upstream on loopback that does exactly what the test scripts, byte by byte. */
export async function startScriptedUpstream(): Promise<ScriptedUpstream> {
  let script: Script = textStream('Hello there.');
  const requests: UpstreamCall[] = [];
  const unseen: UpstreamCall[] = [];
  const waiting: ((call: UpstreamCall) => void)[] = [];

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const call = await received(request, response);
    requests.push(call);
    const waiter = waiting.shift();
    if (waiter) waiter(call);
    else unseen.push(call);
    await script(call, new Reply(response));
  };
  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      // A broken script must fail the test that waits for the answer, not the whole run.
      if (!response.headersSent) response.writeHead(599);
      response.end(`the script threw: ${String(error)}`);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    script: (next) => {
      script = next;
    },
    nextRequest: async () => unseen.shift() ?? new Promise((resolve) => waiting.push(resolve)),
    forget: () => {
      requests.length = 0;
      unseen.length = 0;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function received(request: IncomingMessage, response: ServerResponse): Promise<UpstreamCall> {
  const closed = new Promise<'finished' | 'cut'>((resolve) => {
    response.once('close', () => resolve(response.writableFinished ? 'finished' : 'cut'));
  });
  const text = await readText(request).catch(() => '');
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: request.headers,
    remotePort: request.socket.remotePort,
    text,
    body: parsed(text),
    closed,
  };
}

function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}
