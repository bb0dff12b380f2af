/**
 * Sends finished traces by OTLP over HTTP, as JSON: https://opentelemetry.io/docs/specs/otlp/#otlphttp. Waits a bounded
 * time and tries once: a receiver that is away loses traces, never calls. Must never wait for it with each call.
 */
import type { Clock } from '../../relay/ports/clock.ts';
import type { Log } from '../../relay/ports/telemetry.ts';
import type { TracingSettings } from '../system/environment.ts';
import { spanKinds, type Attributes, type CallTrace, type Span } from './call-trace.ts';

const sendMsMax = 1_000;
/** After a failure nothing is sent for so long: the next calls would only wait. */
const restMs = 10_000;
const quietMs = 60_000;
const textLengthMax = 256;
const failed = 2;

export interface ExporterParts {
  settings: TracingSettings;
  clock: Clock;
  log: Log;
  stack: string;
  version: string;
}

/** Resolves when the receiver has answered, or was waited for long enough, or rests. Never rejects. */
export function otlpExporter({
  settings,
  clock,
  log,
  stack,
  version,
}: ExporterParts): (trace: CallTrace) => Promise<void> {
  const resource = {
    attributes: attributesOf({ 'service.name': settings.service ?? stack, 'service.version': version }),
  };
  const scope = { name: 'relay', version };
  let saidMs = -Infinity;
  let restsUntilMs = -Infinity;
  return async (trace) => {
    if (clock.now() < restsUntilMs) return;
    const body = JSON.stringify({
      resourceSpans: [
        { resource, scopeSpans: [{ scope, spans: trace.spans.map((span) => spanOf(trace, span)) }] },
      ],
    });
    const reason = await send(settings, body);
    if (reason === undefined) return;
    restsUntilMs = clock.now() + restMs;
    if (clock.now() - saidMs < quietMs) return;
    saidMs = clock.now();
    log.event('trace_lost', { reason });
  };
}

/** Returns why it failed. */
async function send({ url, headers: given }: TracingSettings, body: string): Promise<string | undefined> {
  const headers = headersOf({ ...given, 'content-type': 'application/json' });
  if (!headers) return 'headers';
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

/** Undefined: one of them cannot be sent, such as a value with a line feed. */
function headersOf(headers: Record<string, string>): Headers | undefined {
  try {
    return new Headers(headers);
  } catch {
    return undefined;
  }
}

const spanOf = ({ traceId }: CallTrace, span: Span): object => ({
  traceId,
  spanId: span.spanId,
  ...(span.parentId !== undefined && { parentSpanId: span.parentId }),
  name: span.name,
  kind: spanKinds[span.kind],
  startTimeUnixNano: nanoseconds(span.startMs),
  endTimeUnixNano: nanoseconds(span.endMs ?? span.startMs),
  attributes: attributesOf(span.attributes),
  ...(span.error !== undefined && { status: { code: failed, message: span.error } }),
});

/** 64-bit numbers are texts in JSON. */
const nanoseconds = (milliseconds: number): string => `${BigInt(Math.round(milliseconds * 1000)) * 1000n}`;

const attributesOf = (attributes: Attributes): object[] =>
  Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: valueOf(value) }],
  );

function valueOf(value: string | number | boolean): object {
  if (typeof value === 'string') return { stringValue: value.slice(0, textLengthMax) };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}
