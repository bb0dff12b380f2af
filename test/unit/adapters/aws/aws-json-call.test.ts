import {
  Agent as HttpAgent,
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http';
import { Agent as HttpsAgent, createServer as createSecureServer } from 'node:https';
import { createServer as createRawServer, type Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { crc32 } from 'node:zlib';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SignatureV4 } from '@smithy/signature-v4';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  NoReply,
  ServiceRefusal,
  dynamodb,
  resolveEndpoint,
  RetryBudget,
  composeUserAgent,
  secretsManager,
  createAwsCalls,
  type AwsCalls,
  type AwsCallsSettings,
} from '../../../../shared/adapters/aws/aws-calls.ts';
import { createSigner } from '../../../../shared/adapters/aws/aws-signature.ts';
import { Sha256 } from '../../../support/sha256.ts';
import { countSocketWrites } from '../../../support/socket-writes.ts';
import { selfSigned } from '../transport/self-signed.ts';
import { listening } from '../../../support/listening.ts';

const region = 'eu-central-1';
const credentials = { accessKeyId: 'AKID', secretAccessKey: 'secret', sessionToken: 'token' };

const callsTo = (endpoint: string, more: Partial<AwsCallsSettings> = {}): AwsCalls => {
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = endpoint;
  return createAwsCalls({
    service: dynamodb,
    aws: { region, credentials },
    connectMsMax: 500,
    tryMsMax: 5_000,
    attempts: 3,
    ...more,
  });
};

/** Each listener answers one request, and the last one all later requests. */
async function serve(
  ...listeners: RequestListener[]
): Promise<{ endpoint: string; seen: IncomingMessage[] }> {
  const seen: IncomingMessage[] = [];
  const endpoint = await listening(
    createServer((request, response) => {
      const answer = listeners[Math.min(seen.length, listeners.length - 1)];
      seen.push(request);
      void buffer(request).then(() => answer?.(request, response));
    }),
  );
  return { endpoint, seen };
}

const ok: RequestListener = (_, response) => void response.end('{"done":true}');
const refusing =
  (name: string, status = 400, headers: Record<string, string> = {}): RequestListener =>
  (_, response) =>
    void response.writeHead(status, headers).end(JSON.stringify({ __type: `com.amazonaws#${name}` }));
const once1 = { attempts: 1 };
const failureOf = (call: Promise<unknown>): Promise<Error> =>
  call.then(
    () => expect.fail('it was done'),
    (error: unknown) => error as Error,
  );

afterEach(() => void vi.restoreAllMocks());
beforeEach(() => {
  delete process.env['AWS_ENDPOINT_URL'];
});

/** The same numbers in each run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const pieces = [
  'a',
  'Z',
  '9',
  '-',
  '_',
  '/',
  '+',
  '=',
  ' ',
  'ä',
  '漢',
  '\u{1F600}',
  '"',
  '\\',
  '\n',
  '%',
  '*',
];

describe('a signed request', () => {
  test('has the same signature as the SDK for 1,000 inputs, with and without a session token', async () => {
    const next = numbers(13);
    const word = (length: number, of = pieces): string =>
      Array.from({ length }, () => of[Math.floor(next() * of.length)]).join('');
    for (let index = 0; index < 1_000; index += 1) {
      const keys = {
        accessKeyId: `AK${index}`,
        secretAccessKey: word(40, pieces.slice(0, 8)),
        ...(next() < 0.7 && { sessionToken: word(1 + Math.floor(next() * 900), pieces.slice(0, 8)) }),
      };
      const service = next() < 0.5 ? dynamodb : secretsManager;
      const where = ['us-east-1', 'cn-north-1', region][index % 3] ?? region;
      const path = next() < 0.8 ? '/' : `/${encodeURIComponent(word(6))}/(x)'!*~/`;
      const body = JSON.stringify({ [word(5)]: word(Math.floor(next() * 400)) });
      const atMs = Math.floor(next() * 4e12);
      const host = next() < 0.5 ? 'dynamodb.eu-central-1.amazonaws.com' : '127.0.0.1:8000';
      const method = next() < 0.5 ? 'GET' : 'POST';
      const query = new URLSearchParams(
        Object.fromEntries(Array.from({ length: Math.floor(next() * 4) }, () => [word(3), word(4)])),
      );
      const headers = {
        'content-type': service.contentType,
        'x-amz-target': `${service.target}.UpdateItem`,
        'x-of-ours': `${word(4, ['a', 'b', ' '])}  c `,
        'user-agent': 'changed on the way',
      };
      const request = { method, host, path, query, headers, body, credentials: keys, atMs };
      const added = createSigner(service.name, where)(request);
      const theirs = new SignatureV4({
        service: service.name,
        region: where,
        credentials: keys,
        sha256: Sha256,
        applyChecksum: false,
      });
      const signed = await theirs.sign(
        {
          method,
          protocol: 'https:',
          hostname: host,
          path,
          query: Object.fromEntries(query),
          headers: { host, ...headers },
          body,
        },
        { signingDate: new Date(atMs) },
      );
      expect({ host, ...headers, ...added }).toEqual(signed.headers);
    }
  });

  test('is not repeated when its signature is rejected', async () => {
    const { endpoint, seen } = await serve(refusing('InvalidSignatureException'));
    expect(await failureOf(callsTo(endpoint)('GetItem', {}))).toBeInstanceOf(ServiceRefusal);
    expect(seen).toHaveLength(1);
  });
});

describe('a request', () => {
  test('names its client in an unsigned header', async () => {
    const { endpoint, seen } = await serve(ok);
    await callsTo(endpoint)('GetItem', {});
    expect(seen[0]?.headers['user-agent']).toMatch(/^relay\/\S+$/);
    expect(seen[0]?.headers.authorization).not.toContain('user-agent');
  });

  test('also names the application, as far as AWS parses its name', () => {
    const variables = { RELAY_VERSION: '1.2.3' };
    expect(composeUserAgent({ ...variables, AWS_SDK_UA_APP_ID: 'my app/ü\n' })).toBe(
      'relay/1.2.3 app/my-app---',
    );
  });
});

describe('a retry budget', () => {
  /** Returns the number of requests for this many calls. */
  const requestsOf = async (calls: number, answer: RequestListener, more: Partial<AwsCallsSettings> = {}) => {
    const { endpoint, seen } = await serve(answer);
    const call = callsTo(endpoint, { ...more, attempts: 2 });
    for (let made = 0; made < calls; made += 1) await call('GetItem', {}).catch(() => undefined);
    return seen.length;
  };

  test('allows a hundred retries of a failing store; after that a call sends one request', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0);
    expect(await requestsOf(120, refusing('InternalServerError', 500))).toBe(120 + 100);
  });

  test('is not spent on throttling: one hot item leaves retries to all others', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0);
    const budget = new RetryBudget();
    const putOff = refusing('ProvisionedThroughputExceededException');
    expect(await requestsOf(120, putOff, { budget })).toBe(2 * 120);
    expect(await requestsOf(1, refusing('InternalServerError', 500), { budget })).toBe(2);
  });

  test('is refilled by a successful retry, and slowly by other answers', () => {
    const budget = new RetryBudget();
    const lost = new NoReply('ETIMEDOUT', { sent: true });
    const drawAll = (error: unknown): number => {
      let times = 0;
      while (budget.draw(error) > 0) times += 1;
      return times;
    };
    expect(drawAll(lost)).toBe(50);
    for (let answers = 0; answers < 4; answers += 1) budget.give(0);
    expect(budget.may()).toBe(false);
    budget.give(0);
    expect(budget.may()).toBe(true);
    budget.give(10);
    expect(drawAll(undefined)).toBe(2);
    for (let answers = 0; answers < 1_000; answers += 1) budget.give(0);
    expect(drawAll(undefined)).toBe(100);
  });
});

describe('an endpoint', () => {
  test.each(['us-east-1', 'eu-central-1', 'cn-north-1', 'us-gov-west-1', 'us-iso-east-1', 'us-isob-east-1'])(
    "of %s is the same as the SDK's",
    (name) => {
      delete process.env['AWS_ENDPOINT_URL_DYNAMODB'];
      const { endpointProvider } = new DynamoDBClient({ region: name }).config;
      const { url } = endpointProvider({ Region: name, UseFIPS: false, UseDualStack: false });
      expect(resolveEndpoint(dynamodb, name, {}).href).toBe(url.href);
    },
  );

  test("comes from the service's variable before the general one; FIPS is rejected", () => {
    const all = { AWS_ENDPOINT_URL: 'http://127.0.0.1:1/all' };
    const own = { ...all, AWS_ENDPOINT_URL_DYNAMODB: 'http://127.0.0.1:2' };
    expect(resolveEndpoint(dynamodb, region, all).href).toBe('http://127.0.0.1:1/all');
    expect(resolveEndpoint(dynamodb, region, own).href).toBe('http://127.0.0.1:2/');
    expect(() => resolveEndpoint(dynamodb, region, { AWS_USE_FIPS_ENDPOINT: 'true' })).toThrow('FIPS');
  });
});

const withChecksum =
  (checksum: (bytes: Buffer) => number): RequestListener =>
  (_, response: ServerResponse) => {
    const bytes = Buffer.from('{"done":true}');
    response.writeHead(200, { 'x-amz-crc32': String(checksum(bytes)) }).end(bytes);
  };

describe('a reply', () => {
  test('with a wrong checksum is requested again; after a single attempt its outcome is unknown', async () => {
    const wrong = withChecksum((bytes) => crc32(bytes) ^ 1);
    const { endpoint, seen } = await serve(wrong, withChecksum(crc32));
    expect(await callsTo(endpoint)('GetItem', {})).toEqual({ done: true });
    expect(seen).toHaveLength(2);
    const again = await serve(wrong);
    const failure = await failureOf(callsTo(again.endpoint)('UpdateItem', {}, once1));
    expect(failure).toMatchObject({ name: 'NoReply', code: 'EBADCHECKSUM', sent: true });
    expect(again.seen).toHaveLength(1);
  });

  test.each<[string, RequestListener]>([
    [
      'ends in the middle',
      (_, response) => void response.writeHead(200, { 'content-length': '99' }).write('{"a'),
    ],
    ['is no JSON', (_, response) => void response.end('<html>')],
  ])('that %s leaves the outcome unknown', async (what, answer) => {
    const { endpoint } = await serve((request, response) => {
      answer(request, response);
      if (what !== 'is no JSON') setImmediate(() => request.socket.destroy());
    });
    expect(await failureOf(callsTo(endpoint)('UpdateItem', {}, once1))).toMatchObject({
      name: 'NoReply',
      sent: true,
    });
  });

  test.each(['x-amzn-requestid', 'x-amz-request-id', 'x-amzn-request-id'])(
    'that rejects keeps the request id in %s, and so does a damaged one',
    async (header) => {
      const headers = { [header]: 'TTQJ-1' };
      const refused = await serve(refusing('ValidationException', 400, headers));
      expect(await failureOf(callsTo(refused.endpoint)('GetItem', {}))).toMatchObject({
        requestId: 'TTQJ-1',
      });
      const damaged = await serve((_, response) => void response.writeHead(200, headers).end('<html>'));
      const failure = await failureOf(callsTo(damaged.endpoint)('UpdateItem', {}, once1));
      expect(failure).toMatchObject({ code: 'EBADREPLY', requestId: 'TTQJ-1' });
    },
  );

  test('from a proxy with an HTML page keeps its status', async () => {
    const { endpoint } = await serve((_, response) => void response.writeHead(503).end('<html>busy</html>'));
    expect(await failureOf(callsTo(endpoint)('UpdateItem', {}, once1))).toMatchObject({
      name: 'Unknown',
      $metadata: { httpStatusCode: 503 },
    });
  });

  test.each([
    ['ProvisionedThroughputExceededException', 400, 3],
    ['RequestLimitExceeded', 400, 3],
    ['ThrottlingException', 400, 3],
    ['TransactionConflictException', 400, 3],
    ['InternalServerError', 500, 3],
    ['ConditionalCheckFailedException', 400, 1],
    ['ValidationException', 400, 1],
    ['ExpiredTokenException', 400, 1],
  ])('%s with status %i is requested %i times', async (name, status, times) => {
    const { endpoint, seen } = await serve(refusing(name, status));
    expect(await failureOf(callsTo(endpoint)('GetItem', {}))).toMatchObject({ name });
    expect(seen).toHaveLength(times);
  });
});

describe('a connection', () => {
  test("that can't be opened was never used: the call is known to have done nothing", async () => {
    const failure = await failureOf(callsTo('http://127.0.0.1:1')('UpdateItem', {}, once1));
    expect(failure).toMatchObject({ name: 'NoReply', code: 'ECONNREFUSED', sent: false });
  });

  test('whose handshake times out was never used either', async () => {
    const mute = await listening(createRawServer(() => {}));
    const calls = callsTo(mute.replace('http:', 'https:'), { connectMsMax: 50 });
    expect(await failureOf(calls('UpdateItem', {}, once1))).toMatchObject({ sent: false });
  });

  test('without a reply in time leaves the outcome unknown', async () => {
    const { endpoint } = await serve(() => {});
    const failure = await failureOf(callsTo(endpoint, { tryMsMax: 50 })('UpdateItem', {}, once1));
    expect(failure).toMatchObject({ name: 'NoReply', code: 'ETIMEDOUT', sent: true });
  });

  test('is kept alive, and sends a request in one write', async () => {
    const connections = new Set<Socket>();
    const { endpoint } = await serve((request, response) => {
      connections.add(request.socket);
      ok(request, response);
    });
    const calls = callsTo(endpoint);
    await calls('UpdateItem', {}, once1);
    const writes = countSocketWrites(Number(new URL(endpoint).port));
    for (let call = 0; call < 3; call += 1) await calls('UpdateItem', { text: 'ü'.repeat(900) }, once1);
    expect(writes.count).toBe(3);
    expect(connections.size).toBe(1);
  });

  test.each(['http', 'https'])(
    'of %s that a call waited for counts as a kept one: its reply may exceed the connect time-out',
    async (scheme) => {
      const arrivals = [Promise.withResolvers<ServerResponse>(), Promise.withResolvers<ServerResponse>()];
      let count = 0;
      const answer: RequestListener = (request, response) => {
        const arrived = arrivals[count++];
        void buffer(request).then(() => arrived?.resolve(response));
      };
      const { key, cert } = selfSigned();
      const server = scheme === 'https' ? createSecureServer({ key, cert }, answer) : createServer(answer);
      const endpoint = (await listening(server)).replace('http:', `${scheme}:`);
      const settings = { keepAlive: true, maxSockets: 1 };
      const agent = scheme === 'https' ? new HttpsAgent({ ...settings, ca: cert }) : new HttpAgent(settings);
      const first = callsTo(endpoint, { agent, connectMsMax: 5_000 })('UpdateItem', {}, once1);
      const response = await arrivals[0]?.promise;
      const calls = callsTo(endpoint, { agent, connectMsMax: 30, tryMsMax: 1_000 });
      const second = failureOf(calls('UpdateItem', {}, once1));
      response?.end('{}');
      await first;
      await arrivals[1]?.promise;
      // It was sent, so the service may have applied it.
      expect(await second).toMatchObject({ name: 'NoReply', code: 'ETIMEDOUT', sent: true });
    },
  );

  test('that a call is still waiting for at its time-out was never used', async () => {
    const { endpoint, seen } = await serve(() => {});
    const aws = { region, credentials, connectionsMax: 1 };
    const calls = callsTo(endpoint, { aws, tryMsMax: 100 });
    const first = failureOf(calls('UpdateItem', {}, { ...once1, tryMsMax: 5_000 }));
    while (seen.length === 0) await new Promise(setImmediate);
    expect(await failureOf(calls('UpdateItem', {}, once1))).toMatchObject({ sent: false });
    expect(seen).toHaveLength(1);
    seen[0]?.socket.destroy();
    expect(await first).toMatchObject({ sent: true });
  });

  /** Answers once on each connection, and resets it at the second request. */
  const breaking = async () => {
    const used = new WeakSet<Socket>();
    let broken = 0;
    const { endpoint, seen } = await serve((request, response) => {
      if (!used.has(request.socket)) {
        used.add(request.socket);
        ok(request, response);
      } else {
        broken += 1;
        request.socket.resetAndDestroy();
      }
    });
    return { endpoint, seen, broken: () => broken };
  };

  test('that was kept too long is replaced: a read is repeated', async () => {
    const { endpoint, broken } = await breaking();
    const calls = callsTo(endpoint);
    await calls('GetItem', {});
    expect(await calls('GetItem', {})).toEqual({ done: true });
    expect(broken()).toBe(1);
  });

  test('that was kept too long leaves the outcome of a write unknown, and the next write opens a new one', async () => {
    const { endpoint, broken } = await breaking();
    const calls = callsTo(endpoint);
    await Promise.all([calls('GetItem', {}), calls('GetItem', {})]);
    const failure = await failureOf(calls('UpdateItem', {}, once1));
    expect(failure).toBeInstanceOf(NoReply);
    expect(failure).toMatchObject({ sent: true, wasKept: true });
    expect(await calls('UpdateItem', {}, once1)).toEqual({ done: true });
    expect(broken()).toBe(1);
  });
});
