/**
 * An HTTP proxy that stands before a DynamoDB emulator, or before a double of SSM and Secrets Manager, and does what
 * these services do on a bad day. Clients are the product's own: nothing of theirs is replaced or goes around it.
 *
 * How the running stack is put behind it, without a line of the stack changed:
 *
 *     const emulator = await startEmulator(readOptions({...}));           // infra/local/host/emulator.ts
 *     const store = await startFaultProxy({ upstream: emulator.endpoint, seed: 1 });
 *     const secrets = await startSecretDouble({ values: { 'relay/openai': 'sk-x' } });
 *     const secretStore = await startFaultProxy({ upstream: secrets.endpoint, seed: 2 });
 *     startLocalStack({ env: { DYNAMODB_ENDPOINT: store.endpoint, SECRETS_ENDPOINT: secretStore.endpoint } });
 *     ...
 *     store.rules.add({ fault: { kind: 'throttle' }, share: 0.5, tables: ['quotas'], forMs: 5000 });
 *     store.refuseConnections(true);
 *
 * Functions, event source mappings and the seed then all go through it; a checker reads `emulator.endpoint` itself.
 * Another process drives it over `controlEndpoint`: POST /rules with a rule -> {"id"}; DELETE /rules, DELETE /rules/ID;
 * POST /connections {"refused": true}; GET /counts.
 */
import {
  Agent,
  createServer,
  request as sendRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { closeServer, listenOnLoopback } from '../host/free-port.ts';
import { callOf, throttleErrorOf, withCapacity, type JsonCall } from './faulted-call.ts';
import { startFaultControl } from './fault-control.ts';
import { FaultRules, type Fault, type FaultCounts } from './fault-rules.ts';

export interface FaultProxy {
  /** What clients are given instead of the service's address. */
  endpoint: string;
  /** Where another process drives it. */
  controlEndpoint: string;
  rules: FaultRules;
  readonly counts: FaultCounts;
  /** Capacity units of the calls that were answered, by `<operation> <table>`; only with `countUnits`. */
  readonly units: Record<string, number>;
  /** True: nothing listens on the endpoint, and open connections are cut. */
  refuseConnections(refused: boolean): Promise<void>;
  close(): Promise<void>;
}

export interface FaultProxyOptions {
  /** The address of the service. */
  upstream: string;
  seed?: number;
  /** Asks the emulator for the consumed capacity of each call. Clients then see a field that they did not ask for. */
  countUnits?: boolean;
  /** Answers a call instead of the service, as one who checks its rights. Undefined: it goes on. */
  refuse?: (request: IncomingMessage, body: Buffer) => Refusal | undefined;
}

export interface Refusal {
  status: number;
  headers: Record<string, string>;
  body: string;
}

interface Reply {
  status: number;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const { upstream, seed = 1, countUnits = false, refuse } = options;
  const rules = new FaultRules(seed);
  const units: Record<string, number> = {};
  const agent = new Agent({ keepAlive: true });
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const sent = await buffer(request);
    const refusal = refuse?.(request, sent);
    if (refusal) return void response.writeHead(refusal.status, refusal.headers).end(refusal.body);
    const call = callOf(request.headers, sent);
    const fault = rules.faultOf(call);
    if (fault && answersItself(fault, call, response)) return;
    if (fault?.kind === 'slow') await sleep(fault.delayMs);
    const body = countUnits ? withCapacity(call, sent) : sent;
    const reply = await forwarded({ upstream, agent, request, body });
    if (countUnits) addUnits(units, call, reply);
    if (fault?.kind === 'late_reply') await sleep(fault.delayMs);
    if (fault?.kind === 'lost_reply') response.destroy();
    else response.writeHead(reply.status, reply.headers).end(reply.body);
  };
  const server = createServer((request, response) => {
    // Without the service behind it, a client sees what it would see of the service: a broken connection.
    serve(request, response).catch(() => response.destroy());
  });
  const port = await listenOnLoopback(server, 0);
  let closing: Promise<void> | undefined;
  const refuseConnections = async (refused: boolean): Promise<void> => {
    await closing;
    if (refused === !server.listening) return;
    if (!refused) await listenOnLoopback(server, port);
    else {
      rules.countRefusedConnection();
      closing = closeServer(server);
      await closing;
    }
  };
  const control = await startFaultControl({ rules, units, refuseConnections });
  return {
    endpoint: `http://127.0.0.1:${port}`,
    controlEndpoint: control.endpoint,
    rules,
    counts: rules.counts,
    units,
    refuseConnections,
    async close() {
      await Promise.all([closeServer(server), control.close()]);
      agent.destroy();
    },
  };
}

/** Answers a call that the service never sees. False: the call is passed on. */
function answersItself(fault: Fault, call: JsonCall, response: ServerResponse): boolean {
  const answer = (status: number, body: object): true => {
    response.writeHead(status, { 'content-type': call.contentType }).end(JSON.stringify(body));
    return true;
  };
  switch (fault.kind) {
    case 'throttle':
      return answer(400, {
        __type: fault.error ?? throttleErrorOf(call),
        message: 'injected: too many calls',
      });
    case 'error': {
      const __type = call.service === 'secretsmanager' ? 'InternalServiceError' : 'InternalServerError';
      return answer(500, { __type, message: 'injected: internal error' });
    }
    case 'unprocessed':
      return answer(200, { Responses: {}, UnprocessedKeys: call.body['RequestItems'] });
    case 'hang_up':
      response.destroy();
      return true;
    case 'slow':
    case 'late_reply':
    case 'lost_reply':
      break;
  }
  return false;
}

interface Forwarded {
  upstream: string;
  agent: Agent;
  request: IncomingMessage;
  body: Buffer;
}

/** Sends the call on. What its client does meanwhile changes nothing: a call that has left a client may be applied. */
async function forwarded({ upstream, agent, request, body }: Forwarded): Promise<Reply> {
  const { 'transfer-encoding': _, connection: __, ...headers } = request.headers;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const options = { agent, method: request.method, headers: { ...headers, 'content-length': body.length } };
  sendRequest(new URL(request.url ?? '/', upstream), options, resolve)
    .on('error', reject)
    .end(body);
  const reply = await promise;
  const { 'transfer-encoding': ___, connection: ____, ...replyHeaders } = reply.headers;
  return { status: reply.statusCode ?? 502, headers: replyHeaders, body: await buffer(reply) };
}

interface Consumed {
  TableName?: string;
  CapacityUnits?: number;
}

function addUnits(units: Record<string, number>, { operation }: JsonCall, { status, body }: Reply): void {
  if (status !== 200) return;
  const { ConsumedCapacity: consumed = [] } = JSON.parse(body.toString()) as {
    ConsumedCapacity?: Consumed | Consumed[];
  };
  for (const { TableName = '', CapacityUnits = 0 } of [consumed].flat()) {
    const name = `${operation} ${TableName}`;
    units[name] = (units[name] ?? 0) + CapacityUnits;
  }
}
