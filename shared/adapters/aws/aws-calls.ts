/**
 * Calls of AWS's JSON services without the SDK's layers, for what callers wait for: one signed request on a kept
 * connection, its checksum checked. Must never repeat a call whose caller asked for one attempt, unless the service
 * refused its signature.
 */
import { Agent as HttpAgent, request as requestOverHttp, type IncomingHttpHeaders } from 'node:http';
import { Agent as HttpsAgent, request as requestOverHttps } from 'node:https';
import type { Socket } from 'node:net';
import { crc32 } from 'node:zlib';
import type { Repeats } from '../../relay/ports/store-errors.ts';
import type { AwsAccess, AwsCredentials } from '../system/environment.ts';
import { createSigner } from './aws-signature.ts';

/** After a longer freeze of the function, idle connections are closed before they are used again. */
const idleConnectionMs = 60_000;
/** Plenty where one call at a time is served; a host of many says how many it needs. */
const socketsMax = 50;
/** Doubled with each attempt; the pause is random below it. */
const firstPauseMs = 50;

export interface AwsCallsParts {
  service: AwsService;
  aws: AwsAccess;
  connectMsMax: number;
  /** Of one attempt. */
  tryMsMax: number;
  attempts: number;
  write?: ((input: object, operation: string) => string) | undefined;
  read?: ((text: string) => unknown) | undefined;
  agent?: HttpAgent | undefined;
  /** Absent: the one that the environment names, or the region's own. */
  endpoint?: string | undefined;
  /** What repeats draw from. Absent: one of its own. */
  budget?: RetryBudget | undefined;
  /** What is asked, and what comes back. */
  meter?: { request(): void; reply(bytes: number): void } | undefined;
}

export interface CallOptions {
  attempts?: number | undefined;
  tryMsMax?: number | undefined;
}

/** Throws NoReply, or a ServiceRefusal that has the name of the service's error. */
export type AwsCalls = (operation: string, input: object, options?: CallOptions) => Promise<unknown>;

export function createAwsCalls(parts: AwsCallsParts): AwsCalls {
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

  /** @param untilMs of `performance.now()` */
  const callOnce = async (
    target: string,
    body: string,
    credentials: AwsCredentials,
    untilMs: number,
  ): Promise<unknown> => {
    connection ??= connectToService(
      endpoint ? new URL(endpoint) : endpointOf(service, aws.region),
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
    // As one list Node takes them without a look at each.
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
        // The other half is the service's: a try without time for its reply would only leave an unknown outcome.
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
          // The service refused the signature before it looked at the call, so this was no attempt.
          hasCorrected = true;
          tries -= 1;
          continue;
        }
        if (error instanceof NoReply && error.wasKept) connection?.dropIdle();
        if (tries >= attempts || !mayPass(error)) throw error;
        // A service that puts off answers: one hot item must not end the repeats of all others.
        drawnTokens = isThrottled(error) ? 0 : budget.draw(error);
        if (drawnTokens === 0 && !isThrottled(error)) throw error;
        await pause(Math.random() * firstPauseMs * 2 ** tries);
      }
    }
  };
}

/**
 * What a process may still repeat, in tokens, as the SDK's standard mode has it: a store that fails for long is then asked once
 * a call, not three times. https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
 */
export class RetryBudget implements Repeats {
  #tokens = tokensMax;

  may(): boolean {
    return this.draw(undefined) > 0;
  }

  /** What a repeat after this error costs, taken; 0: there is not so much left. */
  draw(error: unknown): number {
    const cost = error instanceof NoReply && error.code === 'ETIMEDOUT' ? 10 : 5;
    if (cost > this.#tokens) return 0;
    this.#tokens -= cost;
    return cost;
  }

  /** After an answer: what the repeat that got it had cost, or one token where none was needed. */
  give(drawn: number): void {
    this.#tokens = Math.min(tokensMax, this.#tokens + (drawn || 1));
  }
}

const tokensMax = 500;

/**
 * What AWS's logs show of a caller: the product, and its owner's name for the application.
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

export const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

/** Where requests go, and on which connections. */
interface ServiceConnection {
  host: string;
  path: string;
  secure: boolean;
  options: { hostname: string; port: string; path: string; method: 'POST'; agent: HttpAgent };
  dropIdle(): void;
}

function connectToService(
  url: URL,
  given: HttpAgent | undefined,
  maxSockets = socketsMax,
): ServiceConnection {
  const secure = url.protocol === 'https:';
  const settings = { keepAlive: true, timeout: idleConnectionMs, maxSockets };
  const agent = given ?? (secure ? new HttpsAgent(settings) : new HttpAgent(settings));
  // As the SDK sends it.
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

/** Sends the request and takes the whole reply. Throws NoReply. */
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
      // `reusedSocket` is false where the request waited for a connection of which there are no more.
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
    // As a text it leaves in one write with the head.
    request.end(sent.body);
  });
}

/** What is written on it next goes out: connected, its handshake done, not closed. */
const isUsable = (socket: Socket & { secureConnecting?: boolean }): boolean =>
  !socket.connecting && socket.secureConnecting !== true && !socket.destroyed;

/** What the reply says. Throws NoReply for one that was damaged on its way. */
function readMembers({ headers, bytes, status }: Reply, read: (text: string) => unknown): unknown {
  const checksum = headers['x-amz-crc32'];
  const requestId = readRequestId(headers);
  if (typeof checksum === 'string' && Number(checksum) !== crc32(bytes))
    throw new NoReply('EBADCHECKSUM', { sent: true, requestId });
  try {
    return bytes.length === 0 ? {} : read(bytes.toString());
  } catch {
    // Something between may answer with a page of its own; its status is what counts.
    if (status >= 300) return {};
    throw new NoReply('EBADREPLY', { sent: true, requestId });
  }
}

/** Where AWS's services are, as the SDK finds them: a variable of the environment, else the region's own address. */

interface AwsService {
  /** As in signatures and in host names. */
  name: string;
  /** `x-amz-target` before its dot. */
  target: string;
  contentType: string;
  /** The variable that names another address for this service alone. */
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

/** Regions of other partitions, and what their host names end with. */
const partitions: [RegExp, string][] = [
  [/^cn-/, 'amazonaws.com.cn'],
  [/^eusc-de-/, 'amazonaws.eu'],
  [/^us-iso-/, 'c2s.ic.gov'],
  [/^us-isob-/, 'sc2s.sgov.gov'],
  [/^eu-isoe-/, 'cloud.adc-e.uk'],
  [/^us-isof-/, 'csp.hci.ic.gov'],
];

/** Throws when FIPS or dual-stack is asked for, so that a request for FIPS never silently gets a plain endpoint. */
export function endpointOf(
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

// Failures of calls of AWS's services. A refusal has its service's text, so it must never reach a client or the log whole.

/** There was no reply, or none that can be trusted. */
export class NoReply extends Error {
  override readonly name = 'NoReply';
  readonly code: string;
  /** The service may have carried the call out. */
  readonly sent: boolean;
  /** The connection was a kept one, which the service may have closed before. */
  readonly wasKept: boolean;
  /** Of a reply that was damaged. */
  readonly requestId: string | undefined;

  constructor(
    code: string,
    {
      sent,
      wasKept = false,
      requestId,
    }: { sent: boolean; wasKept?: boolean; requestId?: string | undefined },
  ) {
    super(`No reply (${code}).`);
    this.code = code;
    this.sent = sent;
    this.wasKept = wasKept;
    this.requestId = requestId;
  }
}

/** The service refused the call or failed. Has all members of its error, and its status as the SDK's errors have it. */
export class ServiceRefusal extends Error {
  readonly $metadata: { httpStatusCode: number };
  /** AWS's name of the call, which its support asks for. */
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

/** Services differ in its name. */
const readRequestId = (headers: IncomingHttpHeaders): string | undefined =>
  (headers['x-amzn-requestid'] ?? headers['x-amz-request-id'] ?? headers['x-amzn-request-id'])?.toString();

/** `com.amazonaws.dynamodb.v20120810#Name` and `Name:http://...` are both the error `Name`. */
function readErrorName(code: unknown): string {
  const [first = ''] = (typeof code === 'string' ? code : 'Unknown').split(/[,:]/);
  return first.split('#').at(-1) ?? first;
}

/** Errors that a service returns before it changes anything; a retry of the same call may succeed. */
export const busyErrors: ReadonlySet<string> = new Set([
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'ThrottlingException',
  'TransactionConflictException',
  'TransactionInProgressException',
]);

/** Whether the same call may succeed a moment later. */
export const mayPass = (error: unknown): boolean =>
  error instanceof NoReply ||
  (error instanceof ServiceRefusal && (error.$metadata.httpStatusCode >= 500 || isThrottled(error)));

const isThrottled = (error: unknown): boolean =>
  error instanceof ServiceRefusal && busyErrors.has(error.name);

/** The credentials have ended, or are not known any more. The service did not look at the call. */
const refusesCredentials = (error: unknown): boolean =>
  error instanceof ServiceRefusal &&
  (error.name === 'ExpiredTokenException' || error.name === 'UnrecognizedClientException');
