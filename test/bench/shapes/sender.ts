/** A process that sends one shape repeatedly, so that the cost of sending does not count in the neighbour's time. */
import { Agent, request as sendRequest } from 'node:http';
import { setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { shapes, type Request, type Sender } from './shapes.ts';

export interface Order {
  shape: string;
  senders: { key: string; sender: Sender }[];
  url: string;
  headers: Record<string, string>;
  /** Maximum number of requests of a connection. */
  requestsMax: number;
  forMs: number;
  /** Pause after each answer: without it, sending alone occupies two processors. */
  pauseMs: number;
  /** The senders take turns. */
  connections: number;
}

export interface Sent {
  requests: number;
  /** Number of answers by error code or status. */
  answers: Record<string, number>;
}

let built: { shape: string; requests: Map<string, Request> } | undefined;

function requestOf(shape: string, { key, sender }: Order['senders'][number]): Request {
  if (built?.shape !== shape) built = { shape, requests: new Map() };
  const request = built.requests.get(key) ?? shapes[shape]?.(sender);
  if (!request) throw new Error(`no shape is called ${shape}`);
  built.requests.set(key, request);
  return request;
}

/** Returns the caller's result: a code, a status, or a broken connection. */
function exchange(
  { url, headers }: Order,
  agent: Agent,
  { key, request }: { key: string; request: Request },
): Promise<string> {
  const { method = 'POST', path, body, headers: own } = request;
  const all = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers, ...own };
  return new Promise((resolve) => {
    const sent = sendRequest(`${url}${path}`, { method, agent, headers: all }, (answer) => {
      let head = '';
      answer.setEncoding('utf8').on('data', (piece: string) => (head += piece.slice(0, 600 - head.length)));
      answer.once('close', () =>
        resolve(/"code":\s?"(\w+)"/.exec(head)?.[1] ?? String(answer.statusCode ?? 'cut')),
      );
    });
    sent.once('error', () => resolve('cut')).end(body);
  });
}

async function carryOut(order: Order): Promise<Sent> {
  const requests = order.senders.map((one) => ({ key: one.key, request: requestOf(order.shape, one) }));
  const answers: Record<string, number> = {};
  const agent = new Agent({ keepAlive: true, maxSockets: order.connections });
  const untilMs = performance.now() + order.forMs;
  const connection = async (at: number): Promise<void> => {
    const mine = requests[at % requests.length];
    if (!mine) return;
    for (let count = 0; count < order.requestsMax && performance.now() < untilMs; count += 1) {
      const answer = await exchange(order, agent, mine);
      answers[answer] = (answers[answer] ?? 0) + 1;
      await sleep(order.pauseMs);
    }
  };
  await Promise.all(Array.from({ length: order.connections }, (_, at) => connection(at)));
  agent.destroy();
  return { requests: Object.values(answers).reduce((sum, each) => sum + each, 0), answers };
}

if (process.argv[2] !== 'force') setPriority(19);
process.on('message', (order: Order) => void carryOut(order).then((sent) => process.send?.(sent)));
