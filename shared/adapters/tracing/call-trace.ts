/**
 * Records the spans of one call and exports them by OTLP. Must never hold a prompt, an answer or a secret, and never grow
 * without bound.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../relay/ports/host.ts';
import type { Log } from '../../relay/ports/telemetry.ts';
import type { TracingSettings } from '../system/environment.ts';

export type SpanAttributes = Record<string, string | number | boolean | undefined>;

export interface Span {
  name: string;
  spanId: string;
  /** Epoch milliseconds with fractions. */
  startMs: number;
  endMs?: number;
  attributes: SpanAttributes;
  error?: string | undefined;
}

const spansMax = 48;

export class CallTrace {
  readonly traceId: string;
  readonly parentId: string | undefined;
  readonly sampled: boolean;
  readonly root: Span;
  readonly spans: Span[] = [];
  readonly #clockMs: number;
  readonly #timerMs = performance.now();

  constructor(clock: Clock, { traceId, spanId, sampled }: Partial<TraceParent> & { sampled: boolean }) {
    this.traceId = traceId ?? randomBytes(16).toString('hex');
    this.parentId = spanId;
    this.sampled = sampled;
    // A freeze stops the timer, so each call starts by the clock.
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

  formatHeader({ spanId }: Span): string {
    return `00-${this.traceId}-${spanId}-${this.sampled ? '01' : '00'}`;
  }

  #now(): number {
    return this.#clockMs + performance.now() - this.#timerMs;
  }
}

// W3C's header `traceparent`. Callers send it, so it must never be trusted.

export interface TraceParent {
  traceId: string;
  spanId: string;
  sampled: boolean;
}

/** Later versions may append fields; `ff` is invalid. */
const traceParent =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Without a valid header the call starts a trace. */
export function readTraceParent(header: string | undefined): TraceParent | undefined {
  const [, version, traceId = '', spanId = '', flags = '', more] =
    traceParent.exec(header?.trim() ?? '') ?? [];
  if (version === undefined || (version === '00' && more !== undefined)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

// Sends traces by OTLP over HTTP as JSON: https://opentelemetry.io/docs/specs/otlp/#otlphttp. Tries once for a bounded time:
// an unreachable receiver loses traces, but must never delay every call.

const sendMsMax = 1_000;
/** After a failure, exports pause for this long, because the next calls would only wait. */
const cooldownMs = 10_000;
const quietMs = 60_000;
const textLengthMax = 256;
/** OTLP's numbers of statuses and span kinds. */
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

/** Resolves when the receiver answered, timed out or is cooling down. Never rejects. */
export function createOtlpExporter(deps: ExporterDeps): (trace: CallTrace) => Promise<void> {
  const { settings, clock, log, stack, version } = deps;
  const named = { 'service.name': settings.service ?? stack, 'service.version': version };
  const resource = { attributes: encodeAttributes(named) };
  const scope = { name: 'relay', version };
  let reportedMs = -Infinity;
  let cooldownUntilMs = -Infinity;
  return async (trace) => {
    if (clock.now() < cooldownUntilMs) return;
    const spans = trace.spans.map((span) => spanOf(trace, span));
    const body = JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ scope, spans }] }] });
    const reason = await send(settings, body);
    if (reason === undefined) return;
    cooldownUntilMs = clock.now() + cooldownMs;
    if (clock.now() - reportedMs < quietMs) return;
    reportedMs = clock.now();
    log.event('trace_lost', { reason });
  };
}

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
    attributes: encodeAttributes(span.attributes),
    status: error === undefined ? undefined : { code: failed, message: error },
  };
}

/** JSON holds 64-bit numbers as text. */
const formatNanoseconds = (milliseconds: number): string =>
  `${BigInt(Math.round(milliseconds * 1000)) * 1000n}`;

const encodeAttributes = (attributes: SpanAttributes): object[] =>
  Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: encodeValue(value) }],
  );

function encodeValue(value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value.slice(0, textLengthMax) };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
