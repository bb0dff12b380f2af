/**
 * The log: one JSON line per request and per fault, written when the call returns. Must never hold a prompt, an answer, a
 * secret or an error's message, which may quote any of them.
 */
import type { Log, RequestLog } from '../../relay/ports/telemetry.ts';

/** Members that make a line a metric as well. Times in epoch milliseconds. */
export interface LineMetrics {
  ofRequest(entry: RequestLog, atMs: number): object;
  ofEvent(name: string, atMs: number): object;
}

export function jsonLog(version: string, metrics?: LineMetrics): Log {
  const write = (level: string, message: string, fields: object, atMs = Date.now()): void => {
    const line = {
      level,
      message,
      timestamp: new Date(atMs).toISOString(),
      service: 'relay',
      version,
      ...fields,
    };
    process.stdout.write(`${JSON.stringify(line, writable)}\n`);
  };
  return {
    request: (entry) => {
      const atMs = Date.now();
      write('INFO', 'request', { ...entry, ...metrics?.ofRequest(entry, atMs) }, atMs);
    },
    event: (name, fields) => {
      const atMs = Date.now();
      write('WARN', name, { ...fields, ...metrics?.ofEvent(name, atMs) }, atMs);
    },
    fault: (requestId, error) => write('ERROR', 'fault', { request_id: requestId, ...describeFault(error) }),
  };
}

/** JSON.stringify throws at a bigint, which amounts are. */
const writable = (_name: string, value: unknown): unknown =>
  typeof value === 'bigint' ? value.toString() : value;

export interface FaultDescription {
  error: string;
  code?: string;
  /** Frames only. */
  stack?: string[];
  cause?: FaultDescription;
}

/** What may be logged of an error: its name, code and frames. */
export function describeFault(error: unknown, depth = 0): FaultDescription {
  if (!(error instanceof Error)) return { error: typeof error };
  const { name, message, stack, cause } = error;
  const code = 'code' in error ? wordOf(error.code) : undefined;
  return {
    error: wordOf(name) ?? 'Error',
    ...(code !== undefined && { code }),
    ...(stack !== undefined && { stack: framesOf(stack, message) }),
    ...(cause !== undefined && depth < 3 && { cause: describeFault(cause, depth + 1) }),
  };
}

/** Our own names and codes are words; any other text may be foreign. */
const wordOf = (value: unknown): string | undefined =>
  typeof value === 'string' && /^\w{1,80}$/.test(value) ? value : undefined;

/** A message may itself look like frames, so it is removed first. */
function framesOf(stack: string, message: string): string[] {
  const rest = message === '' ? stack : stack.replaceAll(message, '');
  return rest
    .split('\n')
    .flatMap((line) => (/^\s+at .*(:\d+:\d+|<anonymous>|native)\)?$/.test(line) ? line.trim() : []));
}
