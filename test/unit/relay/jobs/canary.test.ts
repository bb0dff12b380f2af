/** The scheduled call against a relay on loopback, through the function that makes it. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { invocation } from '../../adapters/lambda/url-event.ts';
import { linesOf, metricsOf } from '../../../support/embedded-metrics.ts';

interface Answer {
  status?: number;
  body: string;
  cut?: boolean;
  /** Called in place of the end. */
  stops?: () => void;
}

let answers: Record<string, Answer>;
let asked: { path: string; key: string | undefined; body: string }[];
let server: Server;

const models = { body: '{"object":"list","data":[{"id":"tiny","object":"model"}]}' };
const streamed = { body: 'data: {"choices":[{"delta":{"content":"OK"}}]}\n\ndata: [DONE]\n\n' };

beforeEach(async () => {
  answers = { '/v1/models': models, '/v1/chat/completions': streamed };
  asked = [];
  server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      const path = request.url ?? '';
      asked.push({ path, key: request.headers.authorization, body });
      const { status = 200, body: text, cut = false, stops } = answers[path] ?? { status: 404, body: '' };
      response.writeHead(status, { 'content-type': 'text/event-stream' });
      response.write(text);
      if (stops) setImmediate(stops);
      else if (cut) response.destroy();
      else response.end();
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  for (const [name, value] of Object.entries({
    RELAY_STACK: 'relay',
    RELAY_VERSION: 'test',
    RELAY_LOCAL: '1',
    ORIGIN_SECRETS: '',
    AWS_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    CANARY_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    CANARY_MODEL: 'tiny',
    CANARY_KEY: 'env:CANARY_TEST_KEY',
    CANARY_TEST_KEY: 'sk-canary-test',
    RELAY_ENV_SECRETS: 'CANARY_*',
  }))
    vi.stubEnv(name, value);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
});

/** The metric and the reason that one run writes. */
async function run(): Promise<{ successes: number; reason: unknown }> {
  const { createCanaryJob: canaryJob } = await import('../../../../functions/canary.ts');
  const lines = await linesOf(() => canaryJob()({ 'detail-type': 'Scheduled Event' }, invocation()));
  const [metric] = lines.flatMap(metricsOf);
  expect(metric).toMatchObject({ name: 'CanarySuccesses', dimensions: { stack: 'relay' } });
  for (const line of lines) expect(line).not.toContain('sk-canary-test');
  const failed = lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .find(({ reason }) => reason);
  return { successes: metric?.value ?? -1, reason: failed?.['reason'] };
}

test('a relay that lists its models and streams a complete answer is a success', async () => {
  expect(await run()).toEqual({ successes: 1, reason: undefined });
  expect(asked.map(({ path }) => path)).toEqual(['/v1/models', '/v1/chat/completions']);
  expect(new Set(asked.map(({ key }) => key))).toEqual(new Set(['Bearer sk-canary-test']));
  expect(JSON.parse(asked[1]?.body ?? '')).toMatchObject({ model: 'tiny', stream: true, max_tokens: 16 });
});

test.each<[reason: string, changed: Record<string, Answer>]>([
  ['models_status_503', { '/v1/models': { status: 503, body: '' } }],
  ['model_not_listed', { '/v1/models': { body: '{"data":[{"id":"tiny-2"}]}' } }],
  ['answer_status_402', { '/v1/chat/completions': { status: 402, body: '{"error":{}}' } }],
  [
    'answer_failed',
    { '/v1/chat/completions': { body: 'data: {"error":{"message":"no"}}\n\ndata: [DONE]\n\n' } },
  ],
  ['answer_cut', { '/v1/chat/completions': { body: 'data: {"choices":[]}\n\n' } }],
  ['connection', { '/v1/chat/completions': { body: 'data: {"choices":[]}\n\n', cut: true } }],
])('%s is a failure with that reason', async (reason, changed) => {
  Object.assign(answers, changed);
  expect(await run()).toEqual({ successes: 0, reason });
});

test('an unreadable key is a failure, and the relay is not called', async () => {
  vi.stubEnv('CANARY_TEST_KEY', '');
  expect(await run()).toEqual({ successes: 0, reason: 'no_key' });
  expect(asked).toEqual([]);
});
