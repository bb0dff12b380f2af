import type { Log, RequestLog } from '../../relay/ports/telemetry.ts';

/** What makes a line a metric too: members that go beside its fields. Times in epoch milliseconds. */
export interface LineMetrics {
  ofRequest(entry: RequestLog, atMs: number): object;
  ofEvent(name: string, atMs: number): object;
}

/** One JSON line per request, and one per fault of ours, on the function's log. A line is written when the call returns. */
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

/** Amounts are bigints, at which JSON would throw. */
const writable = (_name: string, value: unknown): unknown =>
  typeof value === 'bigint' ? value.toString() : value;

export interface FaultDescription {
  error: string;
  code?: string;
  /** Frames only. */
  stack?: string[];
  cause?: FaultDescription;
}

/** What may be logged of an error: its name, code and frames. The message stays out, as it may quote foreign text. */
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

/** Names and codes are words; whatever else stands there came from somewhere else. */
const wordOf = (value: unknown): string | undefined =>
  typeof value === 'string' && /^\w{1,80}$/.test(value) ? value : undefined;

/** A message may itself look like frames, so it is taken out before they are picked. */
function framesOf(stack: string, message: string): string[] {
  const rest = message === '' ? stack : stack.replaceAll(message, '');
  return rest
    .split('\n')
    .flatMap((line) => (/^\s+at .*(:\d+:\d+|<anonymous>|native)\)?$/.test(line) ? line.trim() : []));
}
