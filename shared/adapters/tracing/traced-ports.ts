/** The ports of a call, which also note what each call of them takes. Must never change what a port does. */
import type { UpstreamReply } from '../../upstreams/exchange.ts';
import type { ChatPorts } from '../../relay/call/chat-ports.ts';
import type { CallTrace, Span } from './call-trace.ts';
import { passedOn } from './passed-on.ts';

/** @param current the trace of the call that runs; undefined: none is recorded */
export function tracedPorts(ports: ChatPorts, current: () => CallTrace | undefined): ChatPorts {
  const { quotas, secrets, stored, transport } = ports;
  const { startRun } = stored;
  const timed = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const trace = current();
    if (!trace) return work();
    const span = trace.begin(name, 'client');
    try {
      const result = await work();
      trace.end(span);
      return result;
    } catch (error) {
      trace.end(span, { error: nameOf(error) });
      throw error;
    }
  };
  return {
    ...ports,
    quotas: {
      reserve: (write) => timed('reserve', () => quotas.reserve(write)),
      close: (write) => timed('settle', () => quotas.close(write)),
      tombstone: (write) => quotas.tombstone(write),
      renew: (write) => quotas.renew(write),
      freePlaces: (write) => quotas.freePlaces(write),
      dropCounts: (write) => quotas.dropCounts(write),
      create: (account) => quotas.create(account),
      read: (account, parts, exact) => quotas.read(account, parts, exact),
      move: (write) => quotas.move(write),
      chargeLate: (charge) => quotas.chargeLate(charge),
      closedAs: (account, id) => quotas.closedAs(account, id),
    },
    keys: { find: (key) => timed('key', () => ports.keys.find(key)) },
    secrets: {
      read: (reference) => timed('secret', () => secrets.read(reference)),
      refresh: (reference) => secrets.refresh(reference),
    },
    stored: {
      ...stored,
      startRun:
        startRun &&
        (async (response) => {
          const trace = current();
          const traced = trace && { traceparent: trace.header(trace.root) };
          return timed('start run', () => startRun({ ...response, ...traced }));
        }),
    },
    transport: {
      send: async (request, signal) => {
        const trace = current();
        if (!trace) return transport.send(request, signal);
        const { hostname, port } = new URL(request.url);
        const span = trace.begin('upstream', 'client', {
          'http.request.method': request.method ?? 'POST',
          'server.address': hostname,
          'server.port': port === '' ? undefined : Number(port),
        });
        const headers = { ...request.headers, traceparent: trace.header(span) };
        try {
          const reply = await transport.send({ ...request, headers }, signal);
          span.attributes['http.response.status_code'] = reply.status;
          if (reply.status >= 400) span.error = String(reply.status);
          return { ...reply, body: bodyOf(reply, trace, span) };
        } catch (error) {
          trace.end(span, { error: nameOf(error) });
          throw error;
        }
      },
    },
  };
}

/** The span of an upstream ends with its body. */
const bodyOf = ({ body }: UpstreamReply, trace: CallTrace, span: Span): UpstreamReply['body'] =>
  passedOn(body, (failure) => {
    if (span.endMs === undefined && failure) span.error ??= nameOf(failure.error);
    trace.end(span);
  });

/** Messages may quote foreign text. */
export const nameOf = (error: unknown): string => (error instanceof Error ? error.name : 'Error');
