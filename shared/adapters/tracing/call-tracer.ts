/**
 * Traces calls and background runs. A trace is sent after the last byte and the settle, within the invocation. Must never
 * delay, fail or change the call.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ChatPorts } from '../../relay/ports/chat-ports.ts';
import type { Handle, RelayRequest, RelayResponse } from '../../relay/http/http.ts';
import type { RunEvent } from '../../relay/background-run.ts';
import { requestIdOf } from '../../relay/stored/accepted-call.ts';
import type { RequestLog } from '../../relay/ports/telemetry.ts';
import { CallTrace, readTraceParent, createOtlpExporter } from './call-trace.ts';
import type { ExporterDeps, SpanAttributes, TraceParent } from './call-trace.ts';

interface TracerDeps extends Pick<ExporterDeps, 'settings' | 'stack' | 'version'> {
  ports: ChatPorts;
}

export interface TracingDeps extends TracerDeps {
  routes: readonly Pick<RelayRequest, 'method' | 'path'>[];
  handleOf: (ports: ChatPorts) => Handle;
}

export function traceHandle({ routes, handleOf, ...parts }: TracingDeps): Handle {
  const traces = createTracer(parts);
  const handle = handleOf(traces.ports);
  return async (received) => {
    const { id, method, path, headers } = received;
    const parent = readTraceParent(headers['traceparent']);
    // A caller may opt out of tracing. Only the operator decides how many traces are paid for.
    const sampled = parent?.sampled !== false && traces.isChosen();
    const { trace, within, finish: over } = traces.begin(id, { ...parent, sampled });
    // Only known routes become span names: receivers keep a series for each name.
    const isServed = routes.some((route) => route.method === method && route.path === path);
    trace.root.name = isServed ? `${method} ${path}` : 'HTTP';
    try {
      const response = await within(() => handle(received));
      const attributes = {
        'http.request.method': method,
        'url.path': path,
        'http.response.status_code': response.status,
        'relay.request_id': id,
      };
      const endTrace = async (): Promise<void> => {
        try {
          await response.done;
        } finally {
          await over(attributes);
        }
      };
      return { ...response, body: traceBody(response, trace), done: endTrace() };
    } catch (error) {
      // The error does not wait for the receiver.
      void over({ 'relay.request_id': id }, nameOf(error));
      throw error;
    }
  };
}

/** The call's span ends with its last byte. The settle after it has its own spans. */
function traceBody({ body }: RelayResponse, trace: CallTrace): RelayResponse['body'] {
  const endRoot = (): void => trace.end(trace.root);
  if (typeof body !== 'string') return reportEnd(body, endRoot);
  endRoot();
  return body;
}

interface TracedRunsDeps extends TracerDeps {
  runsOf: (ports: ChatPorts) => (event: RunEvent) => Promise<void>;
}

export function traceRuns({ runsOf, ...parts }: TracedRunsDeps) {
  const traces = createTracer(parts);
  const run = runsOf(traces.ports);
  return async (event: RunEvent, traceparent: string | undefined): Promise<void> => {
    const requestId = requestIdOf(event.id);
    const parent = readTraceParent(traceparent);
    // Sampling was decided when the call was accepted.
    const sampled = parent?.sampled ?? traces.isChosen();
    const { trace, within, finish: over } = traces.begin(requestId, { ...parent, sampled });
    trace.root.name = 'background run';
    let failure: string | undefined;
    try {
      await within(() => run(event));
    } catch (error) {
      failure = nameOf(error);
      throw error;
    } finally {
      await over({ 'relay.request_id': requestId }, failure);
    }
  };
}

/** Open traces of this environment, by request id. */
function createTracer({ ports, ...parts }: TracerDeps) {
  const { clock, log, random } = ports;
  const exportTrace = createOtlpExporter({ ...parts, clock, log });
  const currentTrace = new AsyncLocalStorage<CallTrace>();
  const openTraces = new Map<string, CallTrace>();
  const request = (line: RequestLog): void => {
    const trace = openTraces.get(line.request_id);
    if (trace) describe(trace, line);
    log.request(line);
  };
  return {
    /** They record spans, and describe a call by its log line. */
    ports: tracePorts({ ...ports, log: { ...log, request } }, () => currentTrace.getStore()),
    isChosen: () => random.next() < parts.settings.ratio,
    begin(requestId: string, parent: Partial<TraceParent> & { sampled: boolean }) {
      const trace = new CallTrace(clock, parent);
      openTraces.set(requestId, trace);
      return {
        trace,
        within: <Result>(work: () => Promise<Result>) => currentTrace.run(trace, work),
        /** Resolves when the trace was sent or timed out. Never rejects. */
        finish: async (attributes: SpanAttributes, error?: string): Promise<void> => {
          openTraces.delete(requestId);
          Object.assign(trace.root.attributes, attributes);
          trace.end(trace.root, error);
          if (trace.sampled) await exportTrace(trace);
        },
      };
    },
  };
}

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
 * Passes a sequence on and reports its end once: when the source ended or failed, or the reader returned. Must never be a
 * generator: a generator delays a return until the pending read ends, and drops one before the first read.
 */
function reportEnd<T>(source: AsyncIterable<T>, onEnd: (error?: string) => void): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]: () => {
      const reads = source[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const read = await reads.next();
            if (read.done) onEnd();
            return read;
          } catch (error) {
            onEnd(nameOf(error));
            throw error;
          }
        },
        return() {
          onEnd();
          return reads.return?.() ?? Promise.resolve({ done: true, value: undefined });
        },
      };
    },
  };
}

/** @param current the trace of the running call; undefined: none is recorded */
export function tracePorts(ports: ChatPorts, current: () => CallTrace | undefined): ChatPorts {
  const { keys, quotas, secrets, stored, transport } = ports;
  const { startRun } = stored;
  const recordSpan = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const trace = current();
    const span = trace?.begin(name);
    try {
      return await work();
    } catch (error) {
      if (span) span.error = nameOf(error);
      throw error;
    } finally {
      if (span) trace?.end(span);
    }
  };
  return {
    ...ports,
    quotas: {
      ...quotas,
      reserve: (...given) => recordSpan('reserve', () => quotas.reserve(...given)),
      close: (...given) => recordSpan('settle', () => quotas.close(...given)),
    },
    keys: { find: (...given) => recordSpan('key', () => keys.find(...given)) },
    secrets: { ...secrets, read: (...given) => recordSpan('secret', () => secrets.read(...given)) },
    stored: {
      ...stored,
      startRun:
        startRun &&
        (async (response, ...rest) => {
          const trace = current();
          const traced = trace && { traceparent: trace.formatHeader(trace.root) };
          return recordSpan('start run', () => startRun({ ...response, ...traced }, ...rest));
        }),
    },
    transport: {
      send: async (request, ...rest) => {
        const trace = current();
        if (!trace) return transport.send(request, ...rest);
        const { hostname, port } = new URL(request.url);
        const span = trace.begin('upstream', {
          'http.request.method': request.method ?? 'POST',
          'server.address': hostname,
          'server.port': port === '' ? undefined : Number(port),
        });
        const headers = { ...request.headers, traceparent: trace.formatHeader(span) };
        try {
          const reply = await transport.send({ ...request, headers }, ...rest);
          span.attributes['http.response.status_code'] = reply.status;
          if (reply.status >= 400) span.error = String(reply.status);
          // The span ends with the body. Later failures are the reader's.
          const endSpan = (error?: string) => trace.end(span, span.endMs === undefined ? error : undefined);
          return { ...reply, body: reportEnd(reply.body, endSpan) };
        } catch (error) {
          trace.end(span, nameOf(error));
          throw error;
        }
      },
    },
  };
}

/** Never the message: it may quote foreign text. */
const nameOf = (error: unknown): string => (error instanceof Error ? error.name : 'Error');
