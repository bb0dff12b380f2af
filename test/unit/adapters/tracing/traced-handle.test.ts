import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../../../shared/adapters/system/node-ports.ts';
import { traceHandle } from '../../../../shared/adapters/tracing/call-tracer.ts';
import type { ChatPorts } from '../../../../shared/relay/ports/chat-ports.ts';
import type { Handle, RelayRequest, RelayResponse } from '../../../../shared/relay/http/http.ts';
import { createLoggedHandle } from '../../../../shared/relay/http/logged-handle.ts';
import { refuse } from '../../../../shared/relay/http/refusal.ts';
import { BillingRig, byCall, stream, yuan } from '../../../support/billing-rig.ts';
import { delta, finish, hang, usage, type Step } from '../../../support/core-rig.ts';
import { startWebhookReceiver } from '../../../support/webhook-receiver.ts';

const route = { method: 'POST', path: '/v1/chat/completions' };
const routes = [route];
/** No trace is sent, so nothing waits in real time. */
const settings = { url: 'http://127.0.0.1:1', headers: {}, service: undefined, ratio: 0 };

const traced = (ports: ChatPorts, handleOf: (ports: ChatPorts) => Handle): Handle =>
  traceHandle({ settings, routes, ports, handleOf, stack: 'relay', version: '1' });
const plain = (ports: ChatPorts, handleOf: (ports: ChatPorts) => Handle): Handle => handleOf(ports);

const answer = [delta('a'), finish(), usage(7, 2)];

async function opened(steps: Step[], composed: typeof traced) {
  const rig = new BillingRig({ charges: [byCall], composed }).granted(yuan).upstream({ steps });
  const response = await rig.clock.run(rig.respond(stream));
  const reads = (response.body as AsyncIterable<string>)[Symbol.asyncIterator]();
  return { rig, response, reads };
}

describe.each([
  ['traced', traced],
  ['not traced', plain],
])('a client of a call that is %s', (_how, composed) => {
  it('pays nothing when it leaves while waiting for the first text', async () => {
    // A heartbeat has already started the answer.
    const { rig, response, reads } = await opened([40_000, ...answer], composed);
    expect((await reads.next()).value).toContain(': ping');
    const waiting = reads.next();
    void reads.return?.();
    expect(await waiting).toEqual({ done: true, value: undefined });
    await rig.clock.run(response.done);
    expect(rig.logged).toMatchObject([{ end: 'client_gone', charge: '0' }]);
    expect(rig.item?.available).toBe(yuan);
  });

  it('sees an error when its answer is cut at the deadline', async () => {
    const { rig, response } = await opened([delta('a'), hang], composed);
    const said: string[] = [];
    const read = async (): Promise<void> => {
      for await (const text of response.body) said.push(text);
    };
    await rig.clock.run(read());
    expect(said.join('')).toContain('"error"');
  });
});

describe('the trace of a call', () => {
  const requestOf = (more: Partial<RelayRequest> = {}): RelayRequest => ({
    id: 'one',
    ...route,
    query: new URLSearchParams(),
    headers: {},
    baseUrl: 'https://relay.test/v1',
    json: async () => ({}),
    rawBody: () => '',
    hostDeadlineMs: Infinity,
    ...more,
  });
  const answered: RelayResponse = { status: 200, headers: {}, body: '', done: Promise.resolve() };

  async function tracing(handleOf: (ports: ChatPorts) => Handle) {
    const receiver = await startWebhookReceiver();
    onTestFinished(() => receiver.close());
    const log = { request: () => {}, event: () => {}, fault: () => {} };
    const ports = {
      clock: systemClock,
      random: { next: () => 0.5 },
      log,
      keys: {},
      quotas: {},
      secrets: {},
      stored: {},
    } as unknown as ChatPorts;
    const traced = traceHandle({
      settings: { ...settings, url: `${receiver.address}/v1/traces`, ratio: 1 },
      routes,
      ports,
      handleOf,
      stack: 'relay',
      version: '1',
    });
    const root = async (): Promise<Record<string, unknown>> => {
      const [hook] = await receiver.received('/v1/traces', 1);
      return JSON.parse(hook?.body ?? '').resourceSpans[0].scopeSpans[0].spans[0];
    };
    return { traced, root };
  }

  it.each<[string, Partial<RelayRequest>, string]>([
    ['its route', {}, 'POST /v1/chat/completions'],
    ['none of a path that is not served', { path: '/v1/chat/completions/sk-secret' }, 'HTTP'],
    ['none of a method that is not served', { method: 'BREW' }, 'HTTP'],
  ])('has the name of %s', async (_what, more, name) => {
    const { traced, root } = await tracing(() => async () => answered);
    await (
      await traced(requestOf(more))
    ).done;
    expect(await root()).toMatchObject({ name });
  });

  it('records a rejected call as rejected, but not as failed', async () => {
    const { traced, root } = await tracing((ports) =>
      createLoggedHandle(ports, { endpoint: 'chat' }, () => Promise.reject(refuse('empty_body', 'No body.'))),
    );
    await (
      await traced(requestOf())
    ).done;
    const { attributes, status } = await root();
    expect(attributes).toEqual(
      expect.arrayContaining([
        { key: 'http.response.status_code', value: { intValue: '400' } },
        { key: 'relay.end', value: { stringValue: 'refused' } },
      ]),
    );
    expect(status).toBeUndefined();
  });

  it('ends with a failure when the call fails unexpectedly, and the host sees the failure', async () => {
    const bug = new TypeError('a bug');
    const { traced, root } = await tracing(() => () => Promise.reject(bug));
    await expect(traced(requestOf())).rejects.toBe(bug);
    expect(await root()).toMatchObject({ status: { code: 2, message: 'TypeError' } });
  });
});
