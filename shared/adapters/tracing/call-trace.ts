/** The spans of one call. Must never hold a prompt, an answer or a secret, and never grow without bound. */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../relay/ports/host.ts';
import type { Log } from '../../relay/ports/telemetry.ts';
import type { TracingSettings } from '../system/environment.ts';

export type SpanAttributes = Record<string, string | number | boolean | undefined>;

export interface Span {
  name: string;
  spanId: string;
  /** Epoch milliseconds, with fractions. */
  startMs: number;
  endMs?: number;
  attributes: SpanAttributes;
  /** A word that names the failure. */
  error?: string | undefined;
}

/** Of a call with many repeats, the first ones. */
const spansMax = 48;

export class CallTrace {
  readonly traceId: string;
  /** The caller's span. */
  readonly parentId: string | undefined;
  readonly sampled: boolean;
  /** All others are parts of it. */
  readonly root: Span;
  readonly spans: Span[] = [];
  readonly #clockMs: number;
  readonly #timerMs = performance.now();

  constructor(clock: Clock, { traceId, spanId, sampled }: Partial<TraceParent> & { sampled: boolean }) {
    this.traceId = traceId ?? randomBytes(16).toString('hex');
    this.parentId = spanId;
    this.sampled = sampled;
    // An environment that was frozen has a timer that stood still, so each call begins by its clock.
    this.#clockMs = clock.now();
    this.root = this.begin('call');
  }

  begin(name: string, attributes: SpanAttributes = {}): Span {
    const span: Span = { name, spanId: randomBytes(8).toString('hex'), startMs: this.#now(), attributes };
    if (this.spans.length < spansMax) this.spans.push(span);
    return span;
  }

  end(span: Span, error?: string): void {
    span.endMs ??= this.#now();
    span.error ??= error;
  }

  /** The header by which a request to the outside names the span that it is a part of. */
  formatHeader({ spanId }: Span): string {
    return `00-${this.traceId}-${spanId}-${this.sampled ? '01' : '00'}`;
  }

  #now(): number {
    return this.#clockMs + performance.now() - this.#timerMs;
  }
}

// The header `traceparent` of W3C's Trace Context: which trace a call belongs to. Must never trust what a caller sends in it.

export interface TraceParent {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits: the span that the next one is a part of. */
  spanId: string;
  sampled: boolean;
}

/** Later versions may have more fields behind those of version 00; `ff` is none. */
const traceParent =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Undefined: there is none, or none that can be read. The call then begins a trace. */
export function readTraceParent(header: string | undefined): TraceParent | undefined {
  const [, version, traceId = '', spanId = '', flags = '', more] =
    traceParent.exec(header?.trim() ?? '') ?? [];
  if (version === undefined || (version === '00' && more !== undefined)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

// Sends finished traces by OTLP over HTTP, as JSON: https://opentelemetry.io/docs/specs/otlp/#otlphttp. Waits a bounded
// time and tries once: a receiver that is away loses traces, never calls. Must never wait for it with each call.

const sendMsMax = 1_000;
/** After a failure nothing is sent for so long: the next calls would only wait. */
const restMs = 10_000;
const quietMs = 60_000;
const textLengthMax = 256;
/** As OTLP counts statuses and kinds of spans. */
const failed = 2;
const server = 2;
const client = 3;

export interface ExporterDeps {
  settings: TracingSettings;
  clock: Clock;
  log: Log;
  stack: string;
  version: string;
}

/** Resolves when the receiver has answered, or was waited for long enough, or rests. Never rejects. */
export function createOtlpExporter(deps: ExporterDeps): (trace: CallTrace) => Promise<void> {
  const { settings, clock, log, stack, version } = deps;
  const named = { 'service.name': settings.service ?? stack, 'service.version': version };
  const resource = { attributes: attributesOf(named) };
  const scope = { name: 'relay', version };
  let saidMs = -Infinity;
  let cooldownUntilMs = -Infinity;
  return async (trace) => {
    if (clock.now() < cooldownUntilMs) return;
    const spans = trace.spans.map((span) => spanOf(trace, span));
    const body = JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ scope, spans }] }] });
    const reason = await send(settings, body);
    if (reason === undefined) return;
    cooldownUntilMs = clock.now() + restMs;
    if (clock.now() - saidMs < quietMs) return;
    saidMs = clock.now();
    log.event('trace_lost', { reason });
  };
}

/** Returns why it failed. */
async function send({ url, headers: given }: TracingSettings, body: string): Promise<string | undefined> {
  let headers: Headers;
  try {
    headers = new Headers({ ...given, 'content-type': 'application/json' });
  } catch {
    return 'headers';
  }
  try {
    const reply = await fetch(url, {
      method: 'POST',
      headers,
      body,
      redirect: 'error',
      signal: AbortSignal.timeout(sendMsMax),
    });
    await reply.body?.cancel();
    return reply.ok ? undefined : `status_${reply.status}`;
  } catch (error) {
    return error instanceof Error && error.name === 'TimeoutError' ? 'timeout' : 'connection';
  }
}

function spanOf({ traceId, parentId, root }: CallTrace, span: Span): object {
  const { name, spanId, startMs, endMs = startMs, error } = span;
  return {
    traceId,
    spanId,
    parentSpanId: span === root ? parentId : root.spanId,
    name,
    kind: span === root ? server : client,
    startTimeUnixNano: formatNanoseconds(startMs),
    endTimeUnixNano: formatNanoseconds(endMs),
    attributes: attributesOf(span.attributes),
    status: error === undefined ? undefined : { code: failed, message: error },
  };
}

/** 64-bit numbers are texts in JSON. */
const formatNanoseconds = (milliseconds: number): string =>
  `${BigInt(Math.round(milliseconds * 1000)) * 1000n}`;

const attributesOf = (attributes: SpanAttributes): object[] =>
  Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: valueOf(value) }],
  );

function valueOf(value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value.slice(0, textLengthMax) };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
