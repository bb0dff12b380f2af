/**
 * An HTTP proxy in front of a DynamoDB emulator, or of a double of SSM and Secrets Manager, that simulates these
 * services' bad days. Clients are the product's own: no part of them is replaced or bypasses it.
 *
 * The running stack works behind it without a changed line:
 *
 *     const emulator = await startEmulator(readOptions({...}));           // infra/local/host/emulator.ts
 *     const store = await startFaultProxy({ upstream: emulator.endpoint, seed: 1 });
 *     const secrets = await startSecretDouble({ 'relay/openai': 'sk-x' });
 *     const secretStore = await startFaultProxy({ upstream: secrets.endpoint, seed: 2 });
 *     startLocalStack({ env: { DYNAMODB_ENDPOINT: store.endpoint, SECRETS_ENDPOINT: secretStore.endpoint } });
 *     ...
 *     store.rules.add({ fault: { kind: 'throttle' }, share: 0.5, tables: ['quotas'], forMs: 5000 });
 *     store.refuseConnections(true);
 *
 * Functions, event source mappings and the seed then all use it; a checker reads `emulator.endpoint` directly.
 */
import {
  Agent,
  createServer,
  request as sendRequest,
  type IncomingMessage,
  type ServerResponse,
  type IncomingHttpHeaders,
} from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { closeServer, listenOnLoopback } from '../../infra/local/host/loopback.ts';

export interface FaultProxy {
  /** The endpoint that clients use instead of the service's address. */
  endpoint: string;
  rules: FaultRules;
  readonly counts: FaultCounts;
  /** Capacity units of the answered calls by `<operation> <table>`; only with `countUnits`. */
  readonly units: Record<string, number>;
  /** While true, nothing listens on the endpoint, and open connections are closed. */
  refuseConnections(refused: boolean): Promise<void>;
  close(): Promise<void>;
}

interface FaultProxyOptions {
  /** The address of the service. */
  upstream: string;
  seed?: number;
  /** Requests the consumed capacity of each call. Clients then see a field that they did not request. */
  countUnits?: boolean;
  /** Rejects a call instead of the service, for example to check its permissions. Undefined passes the call on. */
  refuse?: (request: IncomingMessage, body: Buffer) => Refusal | undefined | Promise<Refusal | undefined>;
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
    const refusal = await refuse?.(request, sent);
    if (refusal) return void response.writeHead(refusal.status, refusal.headers).end(refusal.body);
    const call = callOf(request.headers, sent);
    const fault = rules.faultOf(call);
    if (fault && answersItself(fault, call, response)) return;
    if (fault?.kind === 'slow') await sleep(fault.delayMs);
    const body = countUnits ? withCapacity(call, sent) : sent;
    const reply = await forwarded({ upstream, agent, request, body });
    if (countUnits) addUnits(units, call, reply);
    if (fault?.kind === 'lost_reply') response.destroy();
    else response.writeHead(reply.status, reply.headers).end(reply.body.toString());
  };
  const server = createServer((request, response) => {
    // Without the service, a client sees a broken connection, as it would without the proxy.
    serve(request, response).catch(() => response.destroy());
  });
  const port = await listenOnLoopback(server, 0);
  let closing: Promise<void> | undefined;
  const refuseConnections = async (refused: boolean): Promise<void> => {
    await closing;
    if (refused === !server.listening) return;
    if (!refused) await listenOnLoopback(server, port);
    else {
      closing = closeServer(server);
      await closing;
    }
  };
  return {
    endpoint: `http://127.0.0.1:${port}`,
    rules,
    counts: rules.counts,
    units,
    refuseConnections,
    async close() {
      await closeServer(server);
      agent.destroy();
    },
  };
}

/** Answers a call that the service never sees. Returns false to pass the call on. */
function answersItself(fault: Fault, call: JsonCall, response: ServerResponse): boolean {
  const answer = (status: number, body: object): true => {
    response.writeHead(status, { 'content-type': call.contentType }).end(JSON.stringify(body));
    return true;
  };
  switch (fault.kind) {
    case 'throttle':
      return answer(400, {
        __type: throttleErrorOf(call),
        message: 'injected: too many calls',
      });
    case 'error': {
      const __type = call.service === 'secretsmanager' ? 'InternalServiceError' : 'InternalServerError';
      return answer(500, { __type, message: 'injected: internal error' });
    }
    case 'hang_up':
      response.destroy();
      return true;
    case 'slow':
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

/** Passes the call on even if its client disconnects: a sent call may be applied. */
async function forwarded({ upstream, agent, request, body }: Forwarded): Promise<Reply> {
  const { 'transfer-encoding': _, connection: __, ...headers } = request.headers;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const options = { agent, method: request.method, headers: { ...headers, 'content-length': body.length } };
  sendRequest(new URL(request.url ?? '/', upstream), options, resolve)
    .on('error', reject)
    // Node sends a text in one piece with the head.
    .end(body.toString());
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

/**
 * Faults of AWS's JSON services as rules that a script adds and removes: for which calls, how many of them, and for how
 * long. The same seed and the same order of calls give the same faults.
 */

/**
 * The fate of a call.
 * - `throttle`: rejected with the service's usual error; not passed on.
 * - `error`: 500; not passed on.
 * - `hang_up`: the connection closes without a reply; not passed on. The client can't know that.
 * - `lost_reply`: the call is applied, then the connection closes without a reply.
 * - `slow`: the call waits for `delayMs` and is then applied, even if the client has disconnected.
 */
export type Fault =
  | { kind: 'slow'; delayMs: number }
  | { kind: 'throttle' | 'error' | 'hang_up' | 'lost_reply' };

type FaultKind = Fault['kind'];

type FaultService = 'dynamodb' | 'streams' | 'ssm' | 'secretsmanager';

export interface FaultRule {
  fault: Fault;
  /** If absent, all. */
  services?: FaultService[];
  /** `UpdateItem`, `GetSecretValue` ...; if absent, all. */
  operations?: string[];
  /** The end of a table's name, for example `quotas` in any stack, or a secret's name. If absent, all. */
  tables?: string[];
  /** The share of calls that fail, 0 to 1. If absent, all. */
  share?: number;
  /** The duration of the rule in milliseconds, from when it is added. If absent, until it is removed. */
  forMs?: number;
  /** The maximum number of failing calls. If absent, unlimited. */
  times?: number;
}

/** The parts of a call that rules match. */
interface FaultedCall {
  service: FaultService;
  operation: string;
  /** Tables of the call, or its one secret. */
  tables: string[];
}

interface ActiveRule {
  rule: FaultRule;
  untilMs: number;
  left: number;
}

interface FaultCounts {
  /** Received calls by `<service>.<operation>`. */
  calls: Record<string, number>;
  /** Applied faults by kind. */
  faults: Partial<Record<FaultKind, number>>;
}

class FaultRules {
  readonly counts: FaultCounts = { calls: {}, faults: {} };
  readonly #rules = new Map<number, ActiveRule>();
  readonly #random: () => number;
  #lastId = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  /** @returns the id for removing the rule */
  add(rule: FaultRule): number {
    const { forMs = Infinity, times = Infinity } = rule;
    this.#lastId += 1;
    this.#rules.set(this.#lastId, { rule, untilMs: performance.now() + forMs, left: times });
    return this.#lastId;
  }

  remove(id: number): void {
    this.#rules.delete(id);
  }

  clear(): void {
    this.#rules.clear();
  }

  /** Counts the call, and returns the fault of the first matching rule. */
  faultOf(call: FaultedCall): Fault | undefined {
    const name = `${call.service}.${call.operation}`;
    this.counts.calls[name] = (this.counts.calls[name] ?? 0) + 1;
    for (const [id, active] of this.#rules) {
      if (active.left <= 0 || performance.now() >= active.untilMs) {
        this.#rules.delete(id);
        continue;
      }
      if (!isFor(active.rule, call) || this.#random() >= (active.rule.share ?? 1)) continue;
      active.left -= 1;
      const { fault } = active.rule;
      this.counts.faults[fault.kind] = (this.counts.faults[fault.kind] ?? 0) + 1;
      return fault;
    }
    return undefined;
  }
}

function isFor({ services, operations, tables }: FaultRule, call: FaultedCall): boolean {
  if (services && !services.includes(call.service)) return false;
  if (operations && !operations.includes(call.operation)) return false;
  return !tables || call.tables.some((table) => tables.some((end) => isNamed(table, end)));
}

const isNamed = (table: string, end: string): boolean => table === end || table.endsWith(`-${end}`);

/** mulberry32. */
function seededRandom(seed: number): () => number {
  let state = Math.imul(seed, 0x9e3779b1);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

// Reads a call of AWS's JSON protocol as far as fault rules need it.

interface JsonCall extends FaultedCall {
  body: Record<string, unknown>;
  contentType: string;
}

const services: Record<string, FaultService> = {
  DynamoDB_20120810: 'dynamodb',
  DynamoDBStreams_20120810: 'streams',
  AmazonSSM: 'ssm',
  secretsmanager: 'secretsmanager',
};

/** Returns the call of a request; a request of another protocol has the operation ''. */
function callOf(headers: IncomingHttpHeaders, bytes: Buffer): JsonCall {
  const [prefix = '', operation = ''] = String(headers['x-amz-target'] ?? '').split('.');
  const service = services[prefix] ?? 'dynamodb';
  const body = operation === '' ? {} : (JSON.parse(bytes.toString()) as Record<string, unknown>);
  const contentType = headers['content-type'] ?? 'application/x-amz-json-1.0';
  return { service, operation, tables: tablesOf(body), body, contentType };
}

function tablesOf({ TableName, RequestItems, TransactItems, Name, SecretId }: JsonCall['body']): string[] {
  const named = TableName ?? Name ?? SecretId;
  if (typeof named === 'string') return [named];
  if (RequestItems) return Object.keys(RequestItems);
  const actions = (TransactItems ?? []) as Record<string, { TableName?: string }>[];
  return [
    ...new Set(actions.flatMap((action) => Object.values(action).map(({ TableName: name }) => name ?? ''))),
  ];
}

/** Returns the service's own throttling error. */
function throttleErrorOf({ service, operation }: FaultedCall): string {
  if (service !== 'dynamodb') return 'ThrottlingException';
  const ofTable = operation.startsWith('Transact')
    ? 'ThrottlingException'
    : 'ProvisionedThroughputExceededException';
  return `com.amazonaws.dynamodb.v20120810#${ofTable}`;
}

const withoutCapacity = /^(Create|Delete|Describe|List|UpdateT|Tag|Untag)/;

/** Returns the call's body with a request for its capacity units. */
const withCapacity = ({ service, operation, body }: JsonCall, bytes: Buffer): Buffer =>
  service !== 'dynamodb' || operation === '' || withoutCapacity.test(operation)
    ? bytes
    : Buffer.from(JSON.stringify({ ...body, ReturnConsumedCapacity: 'TOTAL' }));

// A double of SSM and Secrets Manager that reads single values over HTTP, with a count for each secret.

export interface SecretDouble {
  /** For `AWS_ENDPOINT_URL_SSM`, `AWS_ENDPOINT_URL_SECRETS_MANAGER`, and a fault proxy's `upstream`. */
  endpoint: string;
  /** Received reads by name. */
  reads: Map<string, number>;
  close(): Promise<void>;
}

/** @param values by name, as in a reference after `ssm:` or `secretsmanager:` */
export async function startSecretDouble(values: Record<string, string>): Promise<SecretDouble> {
  const reads = new Map<string, number>();
  const server = createServer((request, response) => {
    void buffer(request).then((bytes) => {
      const { service, tables, contentType } = callOf(request.headers, bytes);
      const name = tables[0] ?? '';
      reads.set(name, (reads.get(name) ?? 0) + 1);
      const value = values[name];
      const isParameter = service === 'ssm';
      response.writeHead(value === undefined ? 400 : 200, { 'content-type': contentType });
      if (value === undefined)
        response.end(
          JSON.stringify({ __type: isParameter ? 'ParameterNotFound' : 'ResourceNotFoundException' }),
        );
      else
        response.end(
          JSON.stringify(isParameter ? { Parameter: { Name: name, Value: value } } : { SecretString: value }),
        );
    });
  });
  const port = await listenOnLoopback(server, 0);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    reads,
    close: () => closeServer(server),
  };
}
