/**
 * A handle whose calls are traced. The trace leaves after the last byte and after the settle, within the invocation.
 * Must never delay or fail a call.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ChatPorts } from '../../relay/ports/chat-ports.ts';
import type { Handle, RelayRequest, RelayResponse } from '../../relay/http/http.ts';
import {
  type SpanAttributes,
  CallTrace,
  readTraceParent,
  otlpExporter,
  type ExporterParts,
  newTraceId,
  type TraceParent,
  type Span,
} from './call-trace.ts';
import type { RunEvent } from '../../relay/background-run.ts';
import { requestIdOf } from '../../relay/stored/handed-call.ts';
import type { RequestLog } from '../../relay/ports/telemetry.ts';
import type { UpstreamReply } from '../../upstreams/exchange.ts';

export interface TracingParts extends TracerParts {
  /** What the handle serves. */
  route: Pick<RelayRequest, 'method' | 'path'>;
  /** Makes the handle that is traced, of ports that note their calls. */
  handleOf: (ports: ChatPorts) => Handle;
}

export function tracedHandle({ route, handleOf, ...parts }: TracingParts): Handle {
  const tracer = new Tracer(parts);
  const { random } = parts.ports;
  const handle = handleOf(tracer.ports);

  return async (received) => {
    const parent = readTraceParent(received.headers['traceparent']);
    // A caller may ask not to be traced. How many traces are paid for is the operator's choice alone.
    const sampled = parent?.sampled !== false && random.next() < parts.settings.ratio;
    const trace = tracer.begin(received.id, { ...parent, sampled });
    trace.root.name = nameOfCall(route, received);
    try {
      const response = await tracer.within(trace, () => handle(received));
      const ended = async (): Promise<void> => {
        try {
          await response.done;
        } finally {
          await tracer.over(received.id, requestAttributes(received, response));
        }
      };
      return { ...response, body: bodyOf(response, trace), done: ended() };
    } catch (error) {
      // Its answer waits for no receiver of traces.
      void tracer.over(received.id, { 'relay.request_id': received.id }, nameOf(error));
      throw error;
    }
  };
}

/** The caller's own words are attributes: each name of spans is one more series at who receives them. */
const nameOfCall = (route: TracingParts['route'], { method, path }: RelayRequest): string =>
  route.method === method && route.path === path ? `${method} ${path}` : 'HTTP';

/** The call's span ends with its last byte; what is settled after it has spans of its own. */
function bodyOf({ body }: RelayResponse, trace: CallTrace): RelayResponse['body'] {
  const ended = (): void => trace.end(trace.root);
  if (typeof body !== 'string') return passedOn(body, ended);
  ended();
  return body;
}

const requestAttributes = (
  { id, method, path }: RelayRequest,
  { status }: RelayResponse,
): SpanAttributes => ({
  'http.request.method': method,
  'url.path': path,
  'http.response.status_code': status,
  'relay.request_id': id,
});

// Runs of background responses, each with a trace that is a part of the one that its acceptance has. It leaves at the end of
// the run, within the invocation. Must never delay or fail a run.

interface TracedRunsParts extends TracerParts {
  /** Makes the runs that are traced, of ports that note their calls. */
  runsOf: (ports: ChatPorts) => (event: RunEvent) => Promise<void>;
}

export function tracedRuns({ runsOf, ...parts }: TracedRunsParts) {
  const tracer = new Tracer(parts);
  const run = runsOf(tracer.ports);
  return async (event: RunEvent, traceparent: string | undefined): Promise<void> => {
    const requestId = requestIdOf(event.id);
    const parent = readTraceParent(traceparent);
    // Whether the call is traced was decided when it was accepted.
    const sampled = parent?.sampled ?? parts.ports.random.next() < parts.settings.ratio;
    const trace = tracer.begin(requestId, { ...parent, sampled });
    trace.root.name = 'background run';
    const attributes = { 'relay.request_id': requestId };
    try {
      await tracer.within(trace, () => run(event));
    } catch (error) {
      await tracer.over(requestId, attributes, nameOf(error));
      throw error;
    }
    await tracer.over(requestId, attributes);
  };
}

// The traces of what runs in one environment, by the ids of its log lines. Must never delay or fail what it traces.

interface TracerParts extends Pick<ExporterParts, 'settings' | 'stack' | 'version'> {
  ports: ChatPorts;
}

class Tracer {
  /** They note what each call of them takes, and describe a call by its log line. */
  readonly ports: ChatPorts;
  readonly #given: ChatPorts;
  readonly #exported: ReturnType<typeof otlpExporter>;
  readonly #traces = new AsyncLocalStorage<CallTrace>();
  readonly #open = new Map<string, CallTrace>();

  constructor({ ports, ...parts }: TracerParts) {
    const { clock, log } = ports;
    this.#given = ports;
    this.#exported = otlpExporter({ ...parts, clock, log });
    const request: ChatPorts['log']['request'] = (line) => {
      const trace = this.#open.get(line.request_id);
      if (trace) describe(trace, line);
      log.request(line);
    };
    this.ports = tracedPorts({ ...ports, log: { ...log, request } }, () => this.#traces.getStore());
  }

  /** @param requestId as in the log line of what begins */
  begin(requestId: string, parent: Partial<TraceParent> & { sampled: boolean }): CallTrace {
    const trace = new CallTrace(this.#given.clock, { traceId: newTraceId(), ...parent });
    this.#open.set(requestId, trace);
    return trace;
  }

  within<T>(trace: CallTrace, work: () => Promise<T>): Promise<T> {
    return this.#traces.run(trace, work);
  }

  /** Resolves when the trace was sent, or was waited for long enough. Never rejects. */
  async over(requestId: string, attributes: SpanAttributes, error?: string): Promise<void> {
    const trace = this.#open.get(requestId);
    this.#open.delete(requestId);
    trace?.end(trace.root, { attributes, error });
    if (trace?.sampled) await this.#exported(trace);
  }
}

/** Names of OpenTelemetry's conventions for generative AI where there are any. */
function describe({ root }: CallTrace, line: RequestLog): void {
  Object.assign(root.attributes, {
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': line.alias ?? line.model,
    'gen_ai.response.model': line.model,
    'gen_ai.usage.input_tokens': line.prompt_tokens,
    'gen_ai.usage.output_tokens': line.completion_tokens,
    'relay.end': line.end,
    'relay.account': line.account,
    'relay.channel': line.channel,
    'relay.attempts': line.attempts?.map(({ channel, outcome }) => `${channel} ${outcome}`).join(', '),
    'relay.first_content_ms': line.first_content_ms,
    'relay.charge': line.charge,
    'error.type': line.code,
  } satisfies SpanAttributes);
  if (line.end === 'failed' || line.status >= 500) root.error = line.code ?? line.end;
}

/**
 * A sequence that is passed on as it is, and whose end is reported. Must never be a generator: one holds a return back until
 * the read before it ends, and drops a return that comes before its first read.
 */

/** @param ended when the source has ended or failed, or its reader returned. May be reported more than once: the first counts */
function passedOn<T>(
  source: AsyncIterable<T>,
  ended: (failure?: { error: unknown }) => void,
): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]: () => {
      const reads = source[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const read = await reads.next();
            if (read.done) ended();
            return read;
          } catch (error) {
            ended({ error });
            throw error;
          }
        },
        return() {
          ended();
          return reads.return?.() ?? Promise.resolve({ done: true, value: undefined });
        },
      };
    },
  };
}

// The ports of a call, which also note what each call of them takes. Must never change what a port does.

/** @param current the trace of the call that runs; undefined: none is recorded */
export function tracedPorts(ports: ChatPorts, current: () => CallTrace | undefined): ChatPorts {
  const { keys, quotas, secrets, stored, transport } = ports;
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
      ...quotas,
      reserve: (...given) => timed('reserve', () => quotas.reserve(...given)),
      close: (...given) => timed('settle', () => quotas.close(...given)),
    },
    keys: { find: (...given) => timed('key', () => keys.find(...given)) },
    secrets: { ...secrets, read: (...given) => timed('secret', () => secrets.read(...given)) },
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
          return { ...reply, body: tracedPortsBodyOf(reply, trace, span) };
        } catch (error) {
          trace.end(span, { error: nameOf(error) });
          throw error;
        }
      },
    },
  };
}

/** The span of an upstream ends with its body. */
const tracedPortsBodyOf = ({ body }: UpstreamReply, trace: CallTrace, span: Span): UpstreamReply['body'] =>
  passedOn(body, (failure) => {
    if (span.endMs === undefined && failure) span.error ??= nameOf(failure.error);
    trace.end(span);
  });

/** Messages may quote foreign text. */
const nameOf = (error: unknown): string => (error instanceof Error ? error.name : 'Error');
