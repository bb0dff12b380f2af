/** The spans of one call. Must never hold a prompt, an answer or a secret, and never grow without bound. */
import type { Clock } from '../../relay/ports/clock.ts';
import { newSpanId, traceParentOf, type TraceParent } from './trace-context.ts';

export type AttributeValue = string | number | boolean | undefined;
export type Attributes = Record<string, AttributeValue>;
/** As OTLP counts them. */
export const spanKinds = { internal: 1, server: 2, client: 3 } as const;

export interface Span {
  name: string;
  kind: keyof typeof spanKinds;
  spanId: string;
  parentId: string | undefined;
  /** Epoch milliseconds, with fractions. */
  startMs: number;
  /** Undefined: it never ended. */
  endMs: number | undefined;
  attributes: Attributes;
  /** A word that names the failure. */
  error?: string | undefined;
}

/** Of a call with many repeats, the first ones. */
const spansMax = 48;

export class CallTrace {
  readonly traceId: string;
  readonly sampled: boolean;
  readonly root: Span;
  readonly spans: Span[];
  readonly #clockMs: number;
  readonly #timerMs = performance.now();

  constructor(clock: Clock, { traceId, spanId, sampled }: Omit<TraceParent, 'spanId'> & { spanId?: string }) {
    this.traceId = traceId;
    this.sampled = sampled;
    // An environment that was frozen has a timer that stood still, so each call begins by its clock.
    this.#clockMs = clock.now();
    this.root = this.#span('call', 'server', spanId);
    this.spans = [this.root];
  }

  now(): number {
    return this.#clockMs + performance.now() - this.#timerMs;
  }

  /** Begins a span of the call. */
  begin(name: string, kind: Span['kind'], attributes: Attributes = {}): Span {
    const span = this.#span(name, kind, this.root.spanId);
    Object.assign(span.attributes, attributes);
    if (this.spans.length < spansMax) this.spans.push(span);
    return span;
  }

  end(span: Span, more: { attributes?: Attributes; error?: string | undefined } = {}): void {
    span.endMs ??= this.now();
    Object.assign(span.attributes, more.attributes);
    span.error ??= more.error;
  }

  /** The header by which a request to the outside names the span that it is a part of. */
  header({ spanId }: Span): string {
    return traceParentOf({ traceId: this.traceId, spanId, sampled: this.sampled });
  }

  #span(name: string, kind: Span['kind'], parentId: string | undefined): Span {
    return {
      name,
      kind,
      spanId: newSpanId(),
      parentId,
      startMs: this.now(),
      endMs: undefined,
      attributes: {},
    };
  }
}
