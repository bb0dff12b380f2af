/**
 * A handle whose calls are traced. The trace leaves after the last byte and after the settle, within the invocation.
 * Must never delay or fail a call.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ChatPorts } from '../../relay/call/chat-ports.ts';
import type { Handle, RelayRequest, RelayResponse } from '../../relay/http/http.ts';
import type { RequestLog } from '../../relay/ports/telemetry.ts';
import { CallTrace, type Attributes } from './call-trace.ts';
import { otlpExporter, type ExporterParts } from './otlp-exporter.ts';
import { passedOn } from './passed-on.ts';
import { newTraceId, readTraceParent } from './trace-context.ts';
import { nameOf, tracedPorts } from './traced-ports.ts';

export interface TracingParts extends Pick<ExporterParts, 'settings' | 'stack' | 'version'> {
  /** What the handle serves. */
  route: Pick<RelayRequest, 'method' | 'path'>;
  ports: ChatPorts;
  /** Makes the handle that is traced, of ports that note their calls. */
  handleOf: (ports: ChatPorts) => Handle;
}

export function tracedHandle({ route, ports, handleOf, ...parts }: TracingParts): Handle {
  const { clock, log, random } = ports;
  const exported = otlpExporter({ ...parts, clock, log });
  const traces = new AsyncLocalStorage<CallTrace>();
  const open = new Map<string, CallTrace>();
  const request = (line: RequestLog): void => {
    const trace = open.get(line.request_id);
    if (trace) describe(trace, line);
    log.request(line);
  };
  const noting: ChatPorts['log'] = {
    request,
    event: (name, fields) => log.event(name, fields),
    fault: (id, error) => log.fault(id, error),
  };
  const handle = handleOf(tracedPorts({ ...ports, log: noting }, () => traces.getStore()));

  return async (received) => {
    const parent = readTraceParent(received.headers['traceparent']);
    // A caller may ask not to be traced. How many traces are paid for is the operator's choice alone.
    const sampled = parent?.sampled !== false && random.next() < parts.settings.ratio;
    const trace = new CallTrace(clock, { traceId: newTraceId(), ...parent, sampled });
    trace.root.name = nameOfCall(route, received);
    open.set(received.id, trace);
    const over = async (attributes: Attributes, error?: string): Promise<void> => {
      open.delete(received.id);
      trace.end(trace.root, { attributes, error });
      if (sampled) await exported(trace);
    };
    try {
      const response = await traces.run(trace, () => handle(received));
      const ended = async (): Promise<void> => {
        try {
          await response.done;
        } finally {
          await over(requestAttributes(received, response));
        }
      };
      return { ...response, body: bodyOf(response, trace), done: ended() };
    } catch (error) {
      // Its answer waits for no receiver of traces.
      void over({ 'relay.request_id': received.id }, nameOf(error));
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

const requestAttributes = ({ id, method, path }: RelayRequest, { status }: RelayResponse): Attributes => ({
  'http.request.method': method,
  'url.path': path,
  'http.response.status_code': status,
  'relay.request_id': id,
});

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
  } satisfies Attributes);
  if (line.end === 'failed' || line.status >= 500) root.error = line.code ?? line.end;
}
