/** A background response through the core with its acceptance and its run traced, and a receiver of traces. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { traceHandle, traceRuns } from '../../../../shared/adapters/tracing/call-tracer.ts';
import { responsesEndpoint } from '../../../../shared/endpoints/responses/responses-endpoint.ts';
import type { ChatPorts } from '../../../../shared/relay/ports/chat-ports.ts';
import { createBackgroundRuns } from '../../../../shared/relay/background-run.ts';
import { BillingRig, byCall, yuan } from '../../../support/billing-rig.ts';
import { hello } from '../../../support/core-rig.ts';
import { startWebhookReceiver } from '../../../support/webhook-receiver.ts';

interface Span {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
}

const routes = [{ method: 'POST', path: '/v1/responses' }];
const clients = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };

/** Accepts and runs a background response, like functions with tracing. */
async function background(flags: '00' | '01' | undefined, ratio = 1) {
  const receiver = await startWebhookReceiver();
  onTestFinished(() => receiver.close());
  const settings = { url: `${receiver.address}/v1/traces`, headers: {}, service: undefined, ratio };
  const of = { settings, stack: 'relay', version: '1' };
  const composed: { ports?: ChatPorts } = {};
  const rig = new BillingRig({
    key: { store: true },
    charges: [byCall],
    composed: (ports, handleOf) => {
      composed.ports = ports;
      return traceHandle({ ...of, routes, ports, handleOf });
    },
  });
  rig.granted(yuan).upstream({ steps: hello });
  const traceparent = flags && `00-${clients.traceId}-${clients.spanId}-${flags}`;
  const headers = { authorization: 'Bearer sk-test', ...(traceparent && { traceparent }) };
  const accepted = await rig.call(
    { model: 'm', input: 'a secret plan', background: true },
    { path: '/v1/responses', headers },
  );
  expect(accepted.status).toBe(200);
  const [event] = rig.stored.started;
  if (!event || !composed.ports) throw new Error('nothing was started');
  const runsOf = (given: ChatPorts) => createBackgroundRuns(given, responsesEndpoint);
  const run = traceRuns({ ...of, ports: composed.ports, runsOf });
  const runEvent = { ...event, run: 'run 1', hostDeadlineMs: rig.clock.now() + 900_000 };
  await rig.clock.run(run(runEvent, event.traceparent));
  return { rig, event, receiver };
}

const spansIn = (body = ''): Span[] => JSON.parse(body).resourceSpans[0].scopeSpans[0].spans;

describe('a traced background response', () => {
  it('traces its run below its acceptance, and its upstream below its run', async () => {
    const { rig, receiver } = await background('01');
    const [accepting, running] = (await receiver.received('/v1/traces', 2)).map(({ body }) => spansIn(body));
    const [acceptance] = accepting ?? [];
    const [root, ...others] = running ?? [];
    expect(acceptance).toMatchObject({ name: 'POST /v1/responses', parentSpanId: clients.spanId });
    expect(accepting?.map(({ name }) => name)).toContain('start run');
    expect(root).toMatchObject({ name: 'background run', parentSpanId: acceptance?.spanId });
    expect([...(accepting ?? []), ...(running ?? [])].every((span) => span.traceId === clients.traceId)).toBe(
      true,
    );
    expect(others.map(({ name }) => name)).toEqual(expect.arrayContaining(['upstream', 'settle']));
    const upstream = others.find(({ name }) => name === 'upstream');
    const sent = `00-${clients.traceId}-${upstream?.spanId}-01`;
    expect(rig.sent.at(-1)?.headers).toMatchObject({ traceparent: sent });
    expect(receiver.hooks.map(({ body }) => body).join('')).not.toMatch(/secret plan|Hello|sk-/);
  });

  it('is reported only if its acceptance is sampled, though its upstream gets the trace', async () => {
    const { rig, receiver } = await background('00');
    expect(receiver.hooks).toEqual([]);
    expect(rig.sent.at(-1)?.headers['traceparent']).toMatch(new RegExp(`^00-${clients.traceId}-\\w{16}-00$`));
  });

  it('starts a trace if its client sent none, and passes only the trace beside the id', async () => {
    const { event, receiver } = await background(undefined);
    expect(Object.keys(event).toSorted()).toEqual(['account', 'id', 'traceparent']);
    const [accepting, running] = (await receiver.received('/v1/traces', 2)).map(({ body }) => spansIn(body));
    expect(running?.[0]?.traceId).toBe(accepting?.[0]?.traceId);
  });
});
