/**
 * Calls AWS's JSON services without the SDK's layers: one signed request on a kept connection, its checksum checked. Must
 * never repeat a call whose caller asked for one attempt, unless the service refused its signature.
 */
import type { Agent, IncomingHttpHeaders } from 'node:http';
import { Agent as HttpsAgent, request as requestOverHttps } from 'node:https';
import type { Socket } from 'node:net';
import { crc32 } from 'node:zlib';
import type { Repeats } from '../../relay/ports/store-errors.ts';
import type { AwsAccess, AwsCredentials } from '../system/environment.ts';
import { systemClock } from '../system/node-ports.ts';
import { createSigner } from './aws-signature.ts';
import { Agent as HttpAgent, request as requestOverHttp } from '../system/node-http.ts';

/** A function that was frozen longer closes idle connections before it uses them. */
const idleConnectionMs = 60_000;
/** Enough for one call at a time. Servers set `connectionsMax`. */
const socketsMax = 50;
/** Doubles with each attempt. The actual pause is random below it. */
const firstPauseMs = 50;

export interface AwsCallsSettings {
  service: AwsService;
  aws: AwsAccess;
  connectMsMax: number;
  tryMsMax: number;
  attempts: number;
  write?: ((input: object, operation: string) => string) | undefined;
  read?: ((text: string) => unknown) | undefined;
  agent?: Agent | undefined;
  /** Overrides the environment's and the region's endpoint. */
  endpoint?: string | undefined;
  /** Limits repeats over all calls of the process. */
  budget?: RetryBudget | undefined;
  meter?: { request(): void; reply(bytes: number): void } | undefined;
}

export interface CallOptions {
  attempts?: number | undefined;
  tryMsMax?: number | undefined;
}

/** Throws NoReply, or a ServiceRefusal that has the name of the service's error. */
export type AwsCalls = (operation: string, input: object, options?: CallOptions) => Promise<unknown>;

export function createAwsCalls(parts: AwsCallsSettings): AwsCalls {
  const {
    service,
    aws,
    agent,
    endpoint,
    budget = new RetryBudget(),
    meter,
    read = (text: string): unknown => JSON.parse(text),
    write = (input: object) => JSON.stringify(input),
    ...times
  } = parts;
  const sign = createSigner(service.name, aws.region);
  const { credentials: given } = aws;
  let connection: ServiceConnection | undefined;

  const callOnce = async (
    target: string,
    body: string,
    credentials: AwsCredentials,
    untilMs: number,
  ): Promise<unknown> => {
    connection ??= connectToService(
      endpoint ? new URL(endpoint) : resolveEndpoint(service, aws.region),
      agent,
      aws.connectionsMax,
    );
    const { host, path } = connection;
    const named = { 'content-type': service.contentType, 'x-amz-target': target };
    const signed = sign({ host, path, headers: named, body, credentials, atMs: Date.now() });
    const all = {
      host,
      'user-agent': userAgent,
      ...named,
      ...signed,
      'content-length': String(Buffer.byteLength(body)),
    };
    // Node takes a flat list without checking each header.
    const headers = Object.entries(all).flat();
    const tryMsMax = untilMs - performance.now();
    meter?.request();
    const reply = await exchange(connection, { headers, body, tryMsMax, connectMsMax: times.connectMsMax });
    meter?.reply(reply.bytes.length);
    const members = readMembers(reply, read);
    if (reply.status < 300) return members;
    throw new ServiceRefusal(reply, members as Record<string, unknown>);
  };

  return async (operation, input, { attempts = times.attempts, tryMsMax = times.tryMsMax } = {}) => {
    const target = `${service.target}.${operation}`;
    const body = write(input, operation);
    let hasCorrected = false;
    let drawnTokens = 0;
    for (let tries = 1; ; tries += 1) {
      const untilMs = performance.now() + tryMsMax;
      let credentials: AwsCredentials | undefined;
      try {
        // Credentials may take half of the time: a try without time for its reply leaves an unknown outcome.
        credentials = 'current' in given ? await given.current(tryMsMax / 2) : given;
        const members = await callOnce(target, body, credentials, untilMs);
        budget.give(drawnTokens);
        return members;
      } catch (error) {
        if (
          !hasCorrected &&
          refusesCredentials(error) &&
          credentials &&
          'drop' in given &&
          given.drop(credentials)
        ) {
          // The service refused the signature before it read the call, so this does not count as an attempt.
          hasCorrected = true;
          tries -= 1;
          continue;
        }
        if (error instanceof NoReply && error.wasKept) connection?.dropIdle();
        if (tries >= attempts || !isTransient(error)) throw error;
        // A throttled item costs no tokens: it must not stop the repeats of other calls.
        drawnTokens = isThrottled(error) ? 0 : budget.draw(error);
        if (drawnTokens === 0 && !isThrottled(error)) throw error;
        await systemClock.sleep(Math.random() * firstPauseMs * 2 ** tries);
      }
    }
  };
}

/**
 * Limits a process's repeats by tokens, as the SDK's standard mode does: a store that fails for long gets one request a call
 * instead of three. https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
 */
export class RetryBudget implements Repeats {
  #tokens = tokensMax;

  may(): boolean {
    return this.draw(undefined) > 0;
  }

  /** Takes the tokens that a repeat after this error costs. Returns 0 if too few are left. */
  draw(error: unknown): number {
    const cost = error instanceof NoReply && error.code === 'ETIMEDOUT' ? 10 : 5;
    if (cost > this.#tokens) return 0;
    this.#tokens -= cost;
    return cost;
  }

  /** After an answer: returns the tokens of the repeat that got it, or adds one if none was needed. */
  give(drawn: number): void {
    this.#tokens = Math.min(tokensMax, this.#tokens + (drawn || 1));
  }
}

const tokensMax = 500;

/**
 * Names the product and the owner's application in AWS's logs.
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-appid.html
 */
export const composeUserAgent = (variables: NodeJS.ProcessEnv): string =>
  [
    ['relay', variables['RELAY_VERSION'] || 'unreleased'],
    ['app', variables['AWS_SDK_UA_APP_ID']],
  ]
    .flatMap(([name, value]) => (value ? `${name}/${value.replace(/[^\w!#$%&'*+.^`|~-]/g, '-')}` : []))
    .join(' ');

export const userAgent = composeUserAgent(process.env);

interface ServiceConnection {
  host: string;
  path: string;
  secure: boolean;
  options: { hostname: string; port: string; path: string; method: 'POST'; agent: Agent };
  dropIdle(): void;
}

function connectToService(url: URL, given: Agent | undefined, maxSockets = socketsMax): ServiceConnection {
  const secure = url.protocol === 'https:';
  const settings = { keepAlive: true, timeout: idleConnectionMs, maxSockets };
  const agent = given ?? (secure ? new HttpsAgent(settings) : new HttpAgent(settings));
  const path = `${url.pathname}/`.replace(/\/+/g, '/');
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  return {
    host: url.host,
    path,
    secure,
    options: { hostname, port: url.port || (secure ? '443' : '80'), path, method: 'POST', agent },
    dropIdle() {
      for (const sockets of Object.values(agent.freeSockets))
        for (const socket of sockets ?? []) socket.destroy();
    },
  };
}

interface SentRequest {
  headers: string[];
  body: string;
  tryMsMax: number;
  connectMsMax: number;
}

interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  bytes: Buffer;
}

function exchange({ secure, options }: ServiceConnection, sent: SentRequest): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = (secure ? requestOverHttps : requestOverHttp)({ ...options, headers: sent.headers });
    let isConnected = false;
    let wasKept = false;
    let isDone = false;
    let onConnect: NodeJS.Timeout | undefined;
    const onTime = setTimeout(() => fail('ETIMEDOUT'), sent.tryMsMax);
    const stopTimers = (): void => {
      isDone = true;
      clearTimeout(onTime);
      clearTimeout(onConnect);
    };
    const fail = (code: string): void => {
      if (isDone) return;
      stopTimers();
      reject(new NoReply(code, { sent: isConnected, wasKept }));
      request.destroy();
    };
    request.once('socket', (socket) => {
      // `reusedSocket` is false for a request that waited for a free connection.
      wasKept = isUsable(socket);
      isConnected = wasKept;
      if (isConnected) return;
      onConnect = setTimeout(() => fail('ETIMEDOUT'), sent.connectMsMax);
      socket.once(secure ? 'secureConnect' : 'connect', () => {
        isConnected = true;
        clearTimeout(onConnect);
      });
    });
    // Stays attached after the reply's head, to catch late errors.
    request.on('error', (error: Error & { code?: unknown }) =>
      fail(typeof error.code === 'string' ? error.code : 'unknown'),
    );
    request.once('close', () => fail('ECONNRESET'));
    request.once('response', (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => void pieces.push(piece));
      response.on('error', () => fail('ECONNRESET'));
      response.once('end', () => {
        if (isDone) return;
        stopTimers();
        const [first] = pieces;
        const bytes = first !== undefined && pieces.length === 1 ? first : Buffer.concat(pieces);
        resolve({ status: response.statusCode ?? 0, headers: response.headers, bytes });
      });
    });
    // A string body leaves in one write with the head.
    request.end(sent.body);
  });
}

const isUsable = (socket: Socket & { secureConnecting?: boolean }): boolean =>
  !socket.connecting && socket.secureConnecting !== true && !socket.destroyed;

/** Throws NoReply for a reply that was damaged on its way. */
function readMembers({ headers, bytes, status }: Reply, read: (text: string) => unknown): unknown {
  const checksum = headers['x-amz-crc32'];
  const requestId = readRequestId(headers);
  if (typeof checksum === 'string' && Number(checksum) !== crc32(bytes))
    throw new NoReply('EBADCHECKSUM', { sent: true, requestId });
  try {
    return bytes.length === 0 ? {} : read(bytes.toString());
  } catch {
    // A proxy may answer with its own page. Only its status counts.
    if (status >= 300) return {};
    throw new NoReply('EBADREPLY', { sent: true, requestId });
  }
}

/** Addresses of AWS's services, as the SDK finds them: from a variable, else from the region. */

interface AwsService {
  name: string;
  /** `x-amz-target` before its dot. */
  target: string;
  contentType: string;
  variable: string;
}

export const dynamodb: AwsService = {
  name: 'dynamodb',
  target: 'DynamoDB_20120810',
  contentType: 'application/x-amz-json-1.0',
  variable: 'AWS_ENDPOINT_URL_DYNAMODB',
};

export const parameterStore: AwsService = {
  name: 'ssm',
  target: 'AmazonSSM',
  contentType: 'application/x-amz-json-1.1',
  variable: 'AWS_ENDPOINT_URL_SSM',
};

export const secretsManager: AwsService = {
  name: 'secretsmanager',
  target: 'secretsmanager',
  contentType: 'application/x-amz-json-1.1',
  variable: 'AWS_ENDPOINT_URL_SECRETS_MANAGER',
};

/** Regions of other partitions, and the suffix of their host names. */
const partitions: [RegExp, string][] = [
  [/^cn-/, 'amazonaws.com.cn'],
  [/^eusc-de-/, 'amazonaws.eu'],
  [/^us-iso-/, 'c2s.ic.gov'],
  [/^us-isob-/, 'sc2s.sgov.gov'],
  [/^eu-isoe-/, 'cloud.adc-e.uk'],
  [/^us-isof-/, 'csp.hci.ic.gov'],
];

/** Throws when FIPS or dual-stack is requested: such a request must never get a plain endpoint. */
export function resolveEndpoint(
  { name, variable }: Pick<AwsService, 'name' | 'variable'>,
  region: string,
  variables = process.env,
): URL {
  if (variables['AWS_USE_FIPS_ENDPOINT'] === 'true' || variables['AWS_USE_DUALSTACK_ENDPOINT'] === 'true')
    throw new Error('FIPS and dual-stack endpoints are not offered.');
  const given = variables[variable] || variables['AWS_ENDPOINT_URL'];
  const suffix = partitions.find(([pattern]) => pattern.test(region))?.[1] ?? 'amazonaws.com';
  return new URL(given || `https://${name}.${region}.${suffix}`);
}

// Failures of calls. A refusal quotes the service, so clients and logs must never get it whole.

/** No reply arrived, or a damaged one. */
export class NoReply extends Error {
  override readonly name = 'NoReply';
  readonly code: string;
  /** The service may have executed the call. */
  readonly sent: boolean;
  /** The service may have closed this kept connection before the request. */
  readonly wasKept: boolean;
  readonly requestId: string | undefined;

  constructor(code: string, facts: { sent: boolean; wasKept?: boolean; requestId?: string | undefined }) {
    super(`No reply (${code}).`);
    this.code = code;
    this.sent = facts.sent;
    this.wasKept = facts.wasKept ?? false;
    this.requestId = facts.requestId;
  }
}

/** The service refused the call or failed. Keeps all fields of its error, and the status where the SDK has it. */
export class ServiceRefusal extends Error {
  readonly $metadata: { httpStatusCode: number };
  readonly requestId: string | undefined;

  constructor(
    { status, headers }: { status: number; headers: IncomingHttpHeaders },
    members: Record<string, unknown>,
  ) {
    const { message, Message = message, __type, code, ...rest } = members;
    super(typeof Message === 'string' ? Message : `status ${status}`);
    Object.assign(this, rest);
    this.name = readErrorName(__type ?? code ?? headers['x-amzn-errortype']);
    this.$metadata = { httpStatusCode: status };
    this.requestId = readRequestId(headers);
  }
}

const readRequestId = (headers: IncomingHttpHeaders): string | undefined =>
  (headers['x-amzn-requestid'] ?? headers['x-amz-request-id'] ?? headers['x-amzn-request-id'])?.toString();

/** `com.amazonaws.dynamodb.v20120810#Name` and `Name:http://...` are both the error `Name`. */
function readErrorName(code: unknown): string {
  const [first = ''] = (typeof code === 'string' ? code : 'Unknown').split(/[,:]/);
  return first.split('#').at(-1) ?? first;
}

/** The service changed nothing and may accept a retry. */
export const busyErrors: ReadonlySet<string> = new Set([
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'ThrottlingException',
  'TransactionConflictException',
  'TransactionInProgressException',
]);

export const isTransient = (error: unknown): boolean =>
  error instanceof NoReply ||
  (error instanceof ServiceRefusal && (error.$metadata.httpStatusCode >= 500 || isThrottled(error)));

const isThrottled = (error: unknown): boolean =>
  error instanceof ServiceRefusal && busyErrors.has(error.name);

/** The credentials expired or are unknown. The service did not look at the call. */
const refusesCredentials = (error: unknown): boolean =>
  error instanceof ServiceRefusal &&
  (error.name === 'ExpiredTokenException' || error.name === 'UnrecognizedClientException');
