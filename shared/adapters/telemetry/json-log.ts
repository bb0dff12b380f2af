/**
 * The log: one JSON line per request, event and fault, written before the call returns. Must never hold a
 * prompt, an answer, a secret or an error message, which may quote any of them.
 */
import type { Log, RequestLog } from '../../relay/ports/telemetry.ts';

/** Adds the members that make a log line also a metric. Times in epoch milliseconds. */
export interface LineMetrics {
  ofRequest(entry: RequestLog, atMs: number): object;
  ofEvent(name: string, atMs: number): object;
}

export function jsonLog(version: string, metrics?: LineMetrics): Log {
  const write = ({ level, message, atMs = Date.now() }: LineHead, fields: object): void => {
    const line = {
      level,
      message,
      timestamp: new Date(atMs).toISOString(),
      service: 'relay',
      version,
      ...fields,
    };
    process.stdout.write(`${textOf(line)}\n`);
  };
  return {
    request: (entry) => {
      const atMs = Date.now();
      write({ level: 'INFO', message: 'request', atMs }, { ...entry, ...metrics?.ofRequest(entry, atMs) });
    },
    event: (name, fields) => {
      const atMs = Date.now();
      write({ level: 'WARN', message: name, atMs }, { ...fields, ...metrics?.ofEvent(name, atMs) });
    },
    fault: (requestId, error) =>
      write({ level: 'ERROR', message: 'fault' }, { request_id: requestId, ...describeFault(error) }),
  };
}

interface LineHead {
  level: string;
  message: string;
  /** Epoch milliseconds; absent: now. */
  atMs?: number;
}

/** Few lines have amounts: with a replacer, all take three times as long. */
function textOf(line: object): string {
  try {
    return JSON.stringify(line);
  } catch {
    return JSON.stringify(line, writable);
  }
}

/** Amounts are bigints, at which JSON.stringify throws. */
const writable = (_name: string, value: unknown): unknown =>
  typeof value === 'bigint' ? value.toString() : value;

export interface FaultDescription {
  error: string;
  code?: string;
  /** Frames only. */
  stack?: string[];
  cause?: FaultDescription;
}

/** The parts of an error that may be logged: name, code and frames. */
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

/** Names and codes are single words; any other text may quote foreign content. */
const wordOf = (value: unknown): string | undefined =>
  typeof value === 'string' && /^\w{1,80}$/.test(value) ? value : undefined;

/** Removes the message first, because it may look like frames. */
function framesOf(stack: string, message: string): string[] {
  const rest = message === '' ? stack : stack.replaceAll(message, '');
  return rest
    .split('\n')
    .flatMap((line) => (/^\s+at .*(:\d+:\d+|<anonymous>|native)\)?$/.test(line) ? line.trim() : []));
}
