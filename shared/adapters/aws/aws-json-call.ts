/**
 * Calls of AWS's JSON services without the SDK's layers, for what callers wait for: one signed request on a kept
 * connection, its checksum checked. Must never repeat a call whose caller asked for one attempt, unless the service
 * refused its signature. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';
import { Agent as HttpAgent, request as requestOverHttp, type IncomingHttpHeaders } from 'node:http';
import { Agent as HttpsAgent, request as requestOverHttps } from 'node:https';
import type { Socket } from 'node:net';
import { crc32 } from 'node:zlib';
import type { AwsAccess, AwsCredentials } from '../system/environment.ts';
import { mayPass, NoReply, refusesCredentials, ServiceRefusal, skewIn } from './aws-call-errors.ts';
import { endpointOf, type AwsService } from './aws-endpoint.ts';
import { RenewedCredentials } from './renewed-credentials.ts';

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
  /** Absent: an input is written as JSON. */
  write?: ((input: object, operation: string) => string) | undefined;
  /** Absent: the body of a reply is read as JSON. */
  read?: ((text: string) => unknown) | undefined;
  /** Absent: one that keeps connections. */
  agent?: HttpAgent | undefined;
}

export interface CallOptions {
  attempts?: number | undefined;
  tryMsMax?: number | undefined;
}

export interface AwsCalls {
  /** Throws NoReply, or a ServiceRefusal that has the name of the service's error. */
  call(operation: string, input: object, options?: CallOptions): Promise<unknown>;
}

export function awsJsonCalls(parts: AwsCallsParts): AwsCalls {
  const {
    service,
    aws,
    agent,
    read = (text: string): unknown => JSON.parse(text),
    write = (input: object) => JSON.stringify(input),
    ...times
  } = parts;
  const sign = requestSignature(service, aws.region);
  const given =
    typeof aws.credentials === 'function' ? new RenewedCredentials(aws.credentials) : aws.credentials;
  let line: Line | undefined;
  /** Milliseconds by which the service's clock is ahead. */
  let offsetMs = 0;

  const once = async ({ target, body, credentials, untilMs }: Try): Promise<unknown> => {
    line ??= lineTo(endpointOf(service, aws.region), agent, aws.connectionsMax);
    const { host, path } = line;
    const headers = sign({ host, path, target, body, credentials, atMs: Date.now() + offsetMs });
    const tryMsMax = untilMs - performance.now();
    const reply = await exchange(line, { headers, body, tryMsMax, connectMsMax: times.connectMsMax });
    const members = membersOf(reply, read);
    if (reply.status < 300) return members;
    throw new ServiceRefusal(reply, members as Record<string, unknown>);
  };

  /** Whether a repeat would be signed otherwise: by the service's clock, or with other credentials. */
  const corrects = (error: unknown, assumedMs: number, used: AwsCredentials | undefined): boolean => {
    const aheadMs = skewIn(error, assumedMs);
    offsetMs = aheadMs ?? offsetMs;
    if (aheadMs !== undefined) return true;
    return given instanceof RenewedCredentials && refusesCredentials(error) && !!used && given.drop(used);
  };

  return {
    async call(operation, input, { attempts = times.attempts, tryMsMax = times.tryMsMax } = {}) {
      const target = `${service.target}.${operation}`;
      const body = write(input, operation);
      let hasCorrected = false;
      for (let tries = 1; ; tries += 1) {
        const assumedMs = offsetMs;
        const untilMs = performance.now() + tryMsMax;
        let credentials: AwsCredentials | undefined;
        try {
          // The other half is the service's: a try without time for its reply would only leave an unknown outcome.
          credentials = given instanceof RenewedCredentials ? await given.current(tryMsMax / 2) : given;
          return await once({ target, body, credentials, untilMs });
        } catch (error) {
          if (!hasCorrected && corrects(error, assumedMs, credentials)) {
            // The service refused the signature before it looked at the call, so this was no attempt.
            hasCorrected = true;
            tries -= 1;
            continue;
          }
          if (error instanceof NoReply && error.wasKept) line?.dropIdle();
          if (tries >= attempts || !mayPass(error)) throw error;
          await pause(Math.random() * firstPauseMs * 2 ** tries);
        }
      }
    },
  };
}

interface Try extends Pick<RequestToSign, 'target' | 'body' | 'credentials'> {
  /** Of `performance.now()`. */
  untilMs: number;
}

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

/** Where requests go, and on which connections. */
interface Line {
  host: string;
  path: string;
  secure: boolean;
  options: { hostname: string; port: string; path: string; method: 'POST'; agent: HttpAgent };
  dropIdle(): void;
}

function lineTo(url: URL, given: HttpAgent | undefined, maxSockets = socketsMax): Line {
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
function exchange({ secure, options }: Line, sent: SentRequest): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = (secure ? requestOverHttps : requestOverHttp)({ ...options, headers: sent.headers });
    let isConnected = false;
    let wasKept = false;
    let isDone = false;
    let onConnect: NodeJS.Timeout | undefined;
    const onTime = setTimeout(() => fail('ETIMEDOUT'), sent.tryMsMax);
    const ended = (): void => {
      isDone = true;
      clearTimeout(onTime);
      clearTimeout(onConnect);
    };
    const fail = (code: string): void => {
      if (isDone) return;
      ended();
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
        ended();
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
function membersOf({ headers, bytes, status }: Reply, read: (text: string) => unknown): unknown {
  const checksum = headers['x-amz-crc32'];
  if (typeof checksum === 'string' && Number(checksum) !== crc32(bytes))
    throw new NoReply('EBADCHECKSUM', { sent: true });
  try {
    return bytes.length === 0 ? {} : read(bytes.toString());
  } catch {
    // Something between may answer with a page of its own; its status is what counts.
    if (status >= 300) return {};
    throw new NoReply('EBADREPLY', { sent: true });
  }
}

export interface RequestToSign {
  host: string;
  /** As it is sent. */
  path: string;
  target: string;
  body: string;
  credentials: AwsCredentials;
  atMs: number;
}

/** Returns all headers of a signed request, as Node takes them. The signing key of a day is kept. */
export function requestSignature(
  { name, contentType }: Pick<AwsService, 'name' | 'contentType'>,
  region: string,
): (request: RequestToSign) => string[] {
  let kept: { of: string; key: KeyObject } | undefined;
  const keyOf = (secret: string, day: string): KeyObject => {
    const of = `${day} ${secret}`;
    if (kept?.of !== of) {
      const steps = [day, region, name, 'aws4_request'];
      // Node takes eight times as long with a key that it has to import each time.
      kept = { of, key: createSecretKey(steps.reduce(hmac, Buffer.from(`AWS4${secret}`))) };
    }
    return kept.key;
  };
  return ({ host, path, target, body, credentials, atMs }) => {
    const { accessKeyId, secretAccessKey, sessionToken } = credentials;
    const date = new Date(atMs).toISOString().replace(/[-:]|\.\d{3}/g, '');
    const scope = `${date.slice(0, 8)}/${region}/${name}/aws4_request`;
    const token = sessionToken ? `x-amz-security-token:${sessionToken}\n` : '';
    const names = `content-type;host;x-amz-date;${token && 'x-amz-security-token;'}x-amz-target`;
    const head = `content-type:${contentType}\nhost:${host}\nx-amz-date:${date}\n${token}x-amz-target:${target}\n`;
    const asked = `POST\n${canonicalPath(path)}\n\n${head}\n${names}\n${hash('sha256', body)}`;
    const text = `AWS4-HMAC-SHA256\n${date}\n${scope}\n${hash('sha256', asked)}`;
    const signature = hmac(keyOf(secretAccessKey, date.slice(0, 8)), text).toString('hex');
    const all = {
      host,
      'content-type': contentType,
      'x-amz-date': date,
      'x-amz-target': target,
      authorization: `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`,
      'content-length': String(Buffer.byteLength(body)),
    };
    // As one list Node takes them without a look at each.
    const headers = Object.entries(all).flat();
    if (sessionToken) headers.push('x-amz-security-token', sessionToken);
    return headers;
  };
}

const hmac = (key: Buffer | KeyObject, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest();

/** Every service but S3 signs the path encoded once more. */
const canonicalPath = (path: string): string =>
  path === '/'
    ? path
    : encodeURIComponent(path)
        .replaceAll('%2F', '/')
        .replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
