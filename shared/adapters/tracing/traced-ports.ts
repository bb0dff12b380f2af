/** The ports of a call, which also note what each call of them takes. Must never change what a port does. */
import type { UpstreamReply } from '../../upstreams/exchange.ts';
import type { ChatPorts } from '../../relay/call/chat-ports.ts';
import type { CallTrace, Span } from './call-trace.ts';
import { passedOn } from './passed-on.ts';

/** @param current the trace of the call that runs; undefined: none is recorded */
export function tracedPorts(ports: ChatPorts, current: () => CallTrace | undefined): ChatPorts {
  const { stored, transport } = ports;
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
    quotas: around(ports.quotas, {
      reserve: (call) => timed('reserve', call),
      close: (call) => timed('settle', call),
    }),
    keys: around(ports.keys, { find: (call) => timed('key', call) }),
    secrets: around(ports.secrets, { read: (call) => timed('secret', call) }),
    stored: {
      ...stored,
      startRun:
        startRun &&
        (async (response, ...rest) => {
          const trace = current();
          const traced = trace && { traceparent: trace.header(trace.root) };
          return timed('start run', () => startRun({ ...response, ...traced }, ...rest));
        }),
    },
    transport: {
      send: async (request, ...rest) => {
        const trace = current();
        if (!trace) return transport.send(request, ...rest);
        const { hostname, port } = new URL(request.url);
        const span = trace.begin('upstream', 'client', {
          'http.request.method': request.method ?? 'POST',
          'server.address': hostname,
          'server.port': port === '' ? undefined : Number(port),
        });
        const headers = { ...request.headers, traceparent: trace.header(span) };
        try {
          const reply = await transport.send({ ...request, headers }, ...rest);
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

type Call<Method> = Method extends (...given: infer Given) => infer Result
  ? (call: () => Result, given: Given) => Result
  : never;

/**
 * A port with something around some of its methods. What is around a call cannot change its arguments, nor leave one out;
 * all other methods are the port's own.
 */
export const around = <Port extends object>(
  port: Port,
  methods: { [Name in keyof Port]?: Call<Port[Name]> },
): Port =>
  new Proxy(port, {
    get(_, name) {
      const own: unknown = Reflect.get(port, name);
      if (typeof own !== 'function') return own;
      const wrapped = (methods as Record<string | symbol, Around | undefined>)[name];
      return (...given: unknown[]): unknown => {
        const call = (): unknown => Reflect.apply(own, port, given);
        return wrapped ? wrapped(call, given) : call();
      };
    },
  });

type Around = (call: () => unknown, given: unknown[]) => unknown;

/** The span of an upstream ends with its body. */
const bodyOf = ({ body }: UpstreamReply, trace: CallTrace, span: Span): UpstreamReply['body'] =>
  passedOn(body, (failure) => {
    if (span.endMs === undefined && failure) span.error ??= nameOf(failure.error);
    trace.end(span);
  });

/** Messages may quote foreign text. */
export const nameOf = (error: unknown): string => (error instanceof Error ? error.name : 'Error');
