import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { errorStatus } from '../support/upstream-failures.ts';
import { textStream } from '../support/upstream-scripts.ts';
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts';
import { keyOf, rowsOfAccount } from './money-reader.ts';

/** An OTLP receiver on loopback gets the traces of the running stack. */
interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: { key: string; value: Record<string, unknown> }[];
  status?: { code: number; message: string };
}

const traceId = '0af7651916cd43dd8448eb211c80319c';
const callersSpan = 'b7ad6b7169203331';
const path = '/v1/traces';

let receiver: WebhookReceiver;
let down: ScriptedUpstream;
let up: ScriptedUpstream;
let stack: WatchedStack;

beforeAll(async () => {
  [receiver, down, up] = await Promise.all([
    startWebhookReceiver(),
    startScriptedUpstream(),
    startScriptedUpstream(),
  ]);
  down.script(errorStatus(503));
  stack = await startWatchedStack({
    environmentsMax: 1,
    functionEnvironment: {
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.address,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=relay%20one',
    },
    rows: [
      ['channels', { id: 'down', endpoint: down.endpoint, models: ['m'], state: true, priority: 2 }],
      ['channels', { id: 'up', endpoint: up.endpoint, models: ['m'], state: true, priority: 1 }],
      ['charges', { id: 1, type: 'token-billing', models: ['m'], input: 0.001, output: 0.002 }],
      ...rowsOfAccount('traced', 100),
    ],
  });
});
afterAll(async () => {
  await stack?.stop();
  await Promise.all([down?.close(), up?.close(), receiver?.close()]);
});
beforeEach(() => {
  receiver.hooks.length = 0;
  up.script(textStream('Hello there.'));
  up.forget();
});

const call = (headers: Record<string, string> = {}): Promise<Response> =>
  stack.post(
    { model: 'm', stream: true, messages: [{ role: 'user', content: 'a secret plan' }] },
    { headers: { authorization: `Bearer ${keyOf('traced')}`, ...headers } },
  );
const spansOf = (body: string): OtlpSpan[] =>
  (JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: OtlpSpan[] }[] }[] }).resourceSpans.flatMap(
    ({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans),
  );
const attribute = (span: OtlpSpan | undefined, name: string): unknown =>
  Object.values(span?.attributes.find(({ key }) => key === name)?.value ?? {})[0];
const milliseconds = (nanoseconds = '0'): number => Number(BigInt(nanoseconds) / 1_000_000n);

describe('a traced call', () => {
  it("joins its client's trace, and contains its upstreams' spans", async () => {
    const response = await call({ traceparent: `00-${traceId}-${callersSpan}-01` });
    await response.text();
    const [hook] = await receiver.received(path, 1);
    expect(hook?.headers).toMatchObject({ 'content-type': 'application/json', 'x-tenant': 'relay one' });
    const spans = spansOf(hook?.body ?? '');
    const [root] = spans;
    expect(root).toMatchObject({ name: 'POST /v1/chat/completions', parentSpanId: callersSpan });
    expect(new Set(spans.map((span) => span.traceId))).toEqual(new Set([traceId]));
    expect(spans.slice(1).every((span) => span.parentSpanId === root?.spanId)).toBe(true);
    const names = spans.map(({ name }) => name);
    expect(names.slice(names.indexOf('reserve'))).toEqual(['reserve', 'upstream', 'upstream', 'settle']);
    const [failed, answered] = spans.filter(({ name }) => name === 'upstream');
    expect(failed?.status).toEqual({ code: 2, message: '503' });
    expect(attribute(answered, 'http.response.status_code')).toBe('200');
    for (const [upstream, span] of [
      [down, failed],
      [up, answered],
    ] as const)
      expect(upstream.requests.at(-1)?.headers['traceparent']).toBe(`00-${traceId}-${span?.spanId}-01`);
    expect(attribute(root, 'relay.request_id')).toBe(response.headers.get('x-request-id'));
    expect(attribute(root, 'relay.attempts')).toMatch(/^down .*, up answered$/);
    expect(attribute(root, 'gen_ai.usage.output_tokens')).toBeDefined();
    expect(hook?.body).not.toMatch(/secret plan|Hello|sk-/);
  });

  it('ends with its stream, and is exported afterwards', async () => {
    const { promise: seen, resolve: go } = Promise.withResolvers<void>();
    up.script(async (request, reply) => {
      const whole = textStream('Hello there.');
      await seen;
      await whole(request, reply);
    });
    const answered = call();
    await up.nextRequest();
    const heldMs = Date.now();
    expect(receiver.hooks).toEqual([]);
    go();
    await (await answered).text();
    const [hook] = await receiver.received(path, 1);
    const spans = spansOf(hook?.body ?? '');
    for (const span of spans.filter(({ name }) => name.startsWith('POST') || name === 'settle'))
      expect(milliseconds(span.endTimeUnixNano)).toBeGreaterThanOrEqual(heldMs - 1);
    expect(spans.find(({ name }) => name === 'upstream')).toBeDefined();
  });
});
