/**
 * A handle whose calls are traced. The trace leaves after the last byte and after the settle, within the invocation.
 * Must never delay or fail a call.
 */
import type { ChatPorts } from '../../relay/call/chat-ports.ts';
import type { Handle, RelayRequest, RelayResponse } from '../../relay/http/http.ts';
import type { Attributes, CallTrace } from './call-trace.ts';
import { passedOn } from './passed-on.ts';
import { readTraceParent } from './trace-context.ts';
import { nameOf } from './traced-ports.ts';
import { Tracer, type TracerParts } from './tracer.ts';

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

const requestAttributes = ({ id, method, path }: RelayRequest, { status }: RelayResponse): Attributes => ({
  'http.request.method': method,
  'url.path': path,
  'http.response.status_code': status,
  'relay.request_id': id,
});
