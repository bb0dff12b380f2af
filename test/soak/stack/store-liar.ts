/** A proxy in front of the store. Not used without a lie. */
import { Agent, createServer, request as send, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { closeServer, listenOnLoopback } from '../../../infra/local/host/loopback.ts';
import type { Lie } from './lies.ts';

interface Liar {
  endpoint: string;
  /** Starts lying. */
  begin(): void;
  close(): Promise<void>;
}

interface Value {
  S?: string;
  N?: string;
  L?: Value[];
}

interface StoreCall {
  TableName?: string;
  UpdateExpression?: string;
  ExpressionAttributeNames?: Record<string, string>;
  ExpressionAttributeValues?: Record<string, Value>;
}

type Item = Record<string, Value>;

export async function startStoreLiar(behind: string, lie: Lie | undefined): Promise<Liar> {
  if (lie === undefined) return { endpoint: behind, begin: () => {}, close: async () => {} };
  const agent = new Agent({ keepAlive: true });
  let current: StoreLie = {};
  const server = createServer((request, response) => {
    serve(request, response, { behind, agent, lie: current }).catch(() => response.destroy());
  });
  const port = await listenOnLoopback(server, 0);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    begin: () => {
      current = storeLie(lie);
    },
    close: async () => {
      await closeServer(server);
      agent.destroy();
    },
  };
}

interface StoreLie {
  /** The call to forward. Undefined: confirm and drop it. */
  sent?(call: StoreCall): StoreCall | undefined;
  reply?(body: Buffer): Buffer;
}

function storeLie(lie: Lie): StoreLie {
  switch (lie) {
    case 'lost-settle': {
      let settles = 0;
      return { sent: (call) => (closeKind(call) === 'settled' && settles++ % 3 === 2 ? undefined : call) };
    }
    case 'leaked-hold':
      return { sent: (call) => (closeKind(call) === 'expired' ? undefined : call) };
    case 'double-refund':
      return { sent: (call) => (closeKind(call) === 'settled' ? withDoubleRefund(call) : call) };
    case 'stale-price':
      return { reply: alwaysFirstPointer() };
    case 'clean-end':
    case 'wrong-cause':
      break;
  }
  return {};
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  { behind, agent, lie }: { behind: string; agent: Agent; lie: StoreLie },
): Promise<void> {
  const sent = await buffer(request);
  const operation = String(request.headers['x-amz-target']).split('.')[1];
  let body = sent;
  if (lie.sent && operation === 'UpdateItem') {
    const passed = lie.sent(JSON.parse(sent.toString()) as StoreCall);
    if (passed === undefined) {
      response.writeHead(200, { 'content-type': 'application/x-amz-json-1.0' }).end('{}');
      return;
    }
    body = Buffer.from(JSON.stringify(passed));
  }
  const { 'transfer-encoding': _, connection: __, ...headers } = request.headers;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const options = { agent, method: request.method, headers: { ...headers, 'content-length': body.length } };
  send(new URL(request.url ?? '/', behind), options, resolve)
    .on('error', reject)
    .end(body);
  const reply = await promise;
  const whole = await buffer(reply);
  const { 'transfer-encoding': ___, connection: ____, 'x-amz-crc32': _____, ...replyHeaders } = reply.headers;
  const shown = lie.reply && operation === 'BatchGetItem' ? lie.reply(whole) : whole;
  response.writeHead(reply.statusCode ?? 502, { ...replyHeaders, 'content-length': shown.length }).end(shown);
}

const closeKinds = new Set(['settled', 'released', 'expired', 'cancelled']);

/** The kind of the close record in a write of `quotas`. Undefined if it closes nothing. */
function closeKind({ TableName, ExpressionAttributeValues = {} }: StoreCall): string | undefined {
  if (TableName?.endsWith('-quotas') !== true) return undefined;
  const kinds = Object.values(ExpressionAttributeValues).map(({ L }) => L?.[1]?.S ?? '');
  return kinds.find((kind) => closeKinds.has(kind));
}

function withDoubleRefund(call: StoreCall): StoreCall {
  const { ExpressionAttributeNames: names = {}, ExpressionAttributeValues: values = {} } = call;
  const available = Object.keys(names).find((alias) => names[alias] === 'available') ?? '';
  const alias =
    new RegExp(`${available} = ${available} \\+ (:\\w+)`).exec(call.UpdateExpression ?? '')?.[1] ?? '';
  const refund = values[alias]?.N;
  if (refund === undefined) return call;
  // Aliases are named after their values, so no other clause uses this one.
  return { ...call, ExpressionAttributeValues: { ...values, [alias]: { N: String(BigInt(refund) * 2n) } } };
}

/** Always returns the first read of the item `config` of `runtime`, which names the published configuration. */
function alwaysFirstPointer(): (body: Buffer) => Buffer {
  let first: Item | undefined;
  return (body) => {
    const reply = JSON.parse(body.toString()) as { Responses?: Record<string, Item[]> };
    for (const items of Object.values(reply.Responses ?? {}))
      for (const [at, item] of items.entries())
        if (item['id']?.S === 'config') {
          first ??= item;
          items[at] = first;
        }
    return Buffer.from(JSON.stringify(reply));
  };
}
