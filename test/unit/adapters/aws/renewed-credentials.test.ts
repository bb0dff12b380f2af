import { createServer, type RequestListener } from 'node:http';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { AwsCredentials } from '../../../../shared/adapters/system/environment.ts';
import {
  NoReply,
  dynamodb,
  createAwsCalls,
  type AwsCalls,
} from '../../../../shared/adapters/aws/aws-calls.ts';
import { createCredentialSource } from '../../../../shared/adapters/aws/credentials.ts';
import { listening } from '../../../support/listening.ts';

const minutes = 60_000;
const given = (accessKeyId: string, leftMs?: number): AwsCredentials => ({
  accessKeyId,
  secretAccessKey: 'secret',
  ...(leftMs !== undefined && { expiration: new Date(Date.now() + leftMs) }),
});
const away = new Error('the metadata service is away');
const never = new Promise<never>(() => {});

/** The provider's results in order; the last one repeats. */
type Provided = AwsCredentials | Error | Promise<never>;

let ids: string[];
let answer: (id: string) => { status: number; body: string };

/** Advances the clock until the test is over. */
function pass(milliseconds: number): void {
  const { now } = Date;
  Date.now = () => now() + milliseconds;
  onTestFinished(() => void (Date.now = now));
}

beforeEach(() => {
  ids = [];
  answer = () => ({ status: 200, body: '{}' });
});

async function callsSignedBy(...provided: Provided[]) {
  const serve: RequestListener = (request, response) => {
    const id = /Credential=([\w-]+)/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    ids.push(id);
    const { status, body } = answer(id);
    request.resume().on('end', () => response.writeHead(status).end(body));
  };
  const server = createServer(serve);
  const address = await listening(server);
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = address;
  const asked: boolean[] = [];
  const credentials = async ({ forceRefresh = false } = {}): Promise<AwsCredentials> => {
    const next = provided[Math.min(asked.length, provided.length - 1)];
    asked.push(forceRefresh);
    if (next instanceof Error) throw next;
    return next ?? never;
  };
  const aws = { region: 'eu-central-1', credentials: createCredentialSource(credentials) };
  const times = { connectMsMax: 500, tryMsMax: 5_000, attempts: 1 };
  return { calls: createAwsCalls({ service: dynamodb, aws, ...times }), asked };
}

const read = (calls: AwsCalls, tryMsMax?: number): Promise<unknown> => calls('GetItem', {}, { tryMsMax });
const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => expect.fail('it was done'),
    (error: unknown) => error,
  );

describe('expiring credentials', () => {
  test('are renewed in parallel with calls, minutes before they expire', async () => {
    const { calls, asked } = await callsSignedBy(given('first', 4 * minutes), given('second', 60 * minutes));
    await read(calls);
    pass(2_000);
    while (ids.at(-1) !== 'second') await read(calls);
    expect(new Set(ids)).toEqual(new Set(['first', 'second']));
    // The request bypasses the provider's memory.
    expect(asked).toEqual([false, true]);
  });

  test.each<[string, Provided]>([
    ['fails', away],
    ['does not come back', never],
  ])('are used until they expire when their renewal %s', async (_how, renewal) => {
    const { calls, asked } = await callsSignedBy(given('first', 4 * minutes), renewal);
    await read(calls);
    pass(2_000);
    for (let call = 0; call < 4; call += 1) await read(calls);
    expect(ids).toEqual(Array.from({ length: 5 }, () => 'first'));
    expect(asked).toEqual([false, true]);
  });

  test('are not used after they expire', async () => {
    const { calls } = await callsSignedBy(given('first', 10 * minutes), given('second', 60 * minutes));
    await read(calls);
    pass(10 * minutes);
    await read(calls);
    expect(ids).toEqual(['first', 'second']);
  });
});

describe('a call without credentials', () => {
  test.each<[string, Provided]>([
    ['fail', away],
    ['do not come in its time', never],
  ])('does nothing and reports that when credentials %s', async (_how, provided) => {
    const { calls } = await callsSignedBy(provided);
    const failure = await failureOf(read(calls, 100));
    expect(failure).toBeInstanceOf(NoReply);
    expect(failure).toMatchObject({ code: 'ECREDENTIALS', sent: false });
    expect(ids).toEqual([]);
  });

  test('is served by the next credentials; many calls share one renewal', async () => {
    const { calls, asked } = await callsSignedBy(away, given('first', 60 * minutes));
    await failureOf(read(calls));
    await Promise.all(Array.from({ length: 20 }, () => read(calls)));
    expect(ids).toEqual(Array.from({ length: 20 }, () => 'first'));
    expect(asked).toHaveLength(2);
  });
});

describe('credentials that the service rejects', () => {
  const refusing =
    (name: string, ...refused: string[]): typeof answer =>
    (id) =>
      refused.includes(id)
        ? { status: 400, body: JSON.stringify({ __type: `com.amazon.coral.service#${name}` }) }
        : { status: 200, body: '{}' };

  test.each(['ExpiredTokenException', 'UnrecognizedClientException'])(
    'with %s are dropped, and the call is repeated without counting an attempt',
    async (name) => {
      answer = refusing(name, 'first');
      const { calls, asked } = await callsSignedBy(given('first'), given('second'));
      await read(calls);
      await read(calls);
      expect(ids).toEqual(['first', 'second', 'second']);
      expect(asked).toEqual([false, true]);
    },
  );

  test('every time fail the call, but not every call asks the provider', async () => {
    answer = refusing('ExpiredTokenException', 'first', 'second', 'third');
    const { calls, asked } = await callsSignedBy(given('first'), given('second'), given('third'));
    for (let call = 0; call < 5; call += 1)
      expect(await failureOf(read(calls))).toMatchObject({ name: 'ExpiredTokenException' });
    expect(ids).toEqual(['first', 'second', 'second', 'second', 'second', 'second']);
    expect(asked).toHaveLength(2);
  });
});
