/** The header `traceparent` of W3C's Trace Context: which trace a call belongs to. Must never trust what a caller sends in it. */
import { randomBytes } from 'node:crypto';

export interface TraceParent {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits: the span that the next one is a part of. */
  spanId: string;
  sampled: boolean;
}

export const newTraceId = (): string => randomBytes(16).toString('hex');
export const newSpanId = (): string => randomBytes(8).toString('hex');

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

export const traceParentOf = ({ traceId, spanId, sampled }: TraceParent): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
