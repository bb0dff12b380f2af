/** A proxy between clients and the stack. Not used without a lie. */
import { Agent, createServer, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import { closeServer, listenOnLoopback } from '../../../infra/local/host/loopback.ts';
import type { Lie } from './lies.ts';

interface Liar {
  origin: string;
  close(): Promise<void>;
}

const finish =
  '\n\ndata: {"id":"chatcmpl-x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n' +
  'data: [DONE]\n\n';
const rateLimit = {
  error: {
    message: 'The upstream of this model is rate-limited. Please try again in 5s.',
    type: 'rate_limit_error',
    param: null,
    code: 'rate_limit_exceeded',
  },
};

const stalledMs = 5_000;

export async function startEdgeLiar(behind: string, lie: Lie | undefined): Promise<Liar> {
  if (lie !== 'clean-end' && lie !== 'wrong-cause') return { origin: behind, close: async () => {} };
  const agent = new Agent({ keepAlive: true });
  const server = createServer((request, response) => {
    const { connection: _, ...headers } = request.headers;
    const onward = send(new URL(request.url ?? '/', behind), { agent, method: request.method, headers });
    onward.on('response', (reply) =>
      lie === 'clean-end' ? endWell(reply, response) : blameRate(reply, response),
    );
    onward.on('error', () => response.destroy());
    response.once('close', () => onward.destroy());
    request.pipe(onward);
  });
  const port = await listenOnLoopback(server, 0);
  return {
    origin: `http://127.0.0.1:${port}`,
    close: async () => {
      await closeServer(server);
      agent.destroy();
    },
  };
}

/** Ends an answer normally if its reader stalls for some seconds, or if the relay cuts it. */
function endWell(reply: IncomingMessage, response: ServerResponse): void {
  response.writeHead(reply.statusCode ?? 502, reply.headers);
  let rest = Buffer.alloc(0);
  let stall: NodeJS.Timeout | undefined;
  const endNow = (): void => {
    clearTimeout(stall);
    reply.removeAllListeners('data').destroy();
    response.end(finish);
  };
  reply.on('data', (piece: Buffer) => {
    // Only complete events, so that the end looks normal.
    const all = Buffer.concat([rest, piece]);
    const cut = all.lastIndexOf('\n\n') + 2;
    rest = all.subarray(cut < 2 ? 0 : cut);
    if (cut < 2 || response.write(all.subarray(0, cut))) return;
    reply.pause();
    stall = setTimeout(endNow, stalledMs);
  });
  response.on('drain', () => {
    clearTimeout(stall);
    reply.resume();
  });
  response.once('close', () => clearTimeout(stall));
  reply.once('end', () => response.end(rest));
  reply.once('error', endNow);
}

function blameRate(reply: IncomingMessage, response: ServerResponse): void {
  if (reply.statusCode !== 502 && reply.statusCode !== 504) {
    response.writeHead(reply.statusCode ?? 502, reply.headers);
    reply.pipe(response);
    return;
  }
  reply.resume();
  const { 'x-request-id': id = '' } = reply.headers;
  response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '5', 'x-request-id': id });
  response.end(JSON.stringify(rateLimit));
}
