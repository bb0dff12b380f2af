/** The traces of what runs in one environment, by the ids of its log lines. Must never delay or fail what it traces. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { ChatPorts } from '../../relay/call/chat-ports.ts';
import type { RequestLog } from '../../relay/ports/telemetry.ts';
import { CallTrace, type Attributes } from './call-trace.ts';
import { otlpExporter, type ExporterParts } from './otlp-exporter.ts';
import { newTraceId, type TraceParent } from './trace-context.ts';
import { around, tracedPorts } from './traced-ports.ts';

export interface TracerParts extends Pick<ExporterParts, 'settings' | 'stack' | 'version'> {
  ports: ChatPorts;
}

export class Tracer {
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
    const noting = around(log, {
      request: (call, [line]) => {
        const trace = this.#open.get(line.request_id);
        if (trace) describe(trace, line);
        call();
      },
    });
    this.ports = tracedPorts({ ...ports, log: noting }, () => this.#traces.getStore());
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
  async over(requestId: string, attributes: Attributes, error?: string): Promise<void> {
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
  } satisfies Attributes);
  if (line.end === 'failed' || line.status >= 500) root.error = line.code ?? line.end;
}
