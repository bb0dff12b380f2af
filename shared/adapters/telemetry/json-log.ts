/**
 * The log: one JSON line per request, event and fault, written before the call returns. Must never hold a
 * prompt, an answer, a secret or an error message, which may quote any of them.
 */
import type { Log, RequestLog } from '../../relay/ports/telemetry.ts';

/** Makes a log line also a metric. Times in epoch milliseconds. */
export interface LineMetrics {
  /** The members of a request's line, its time and the metrics included. */
  ofRequest(entry: RequestLog, atMs: number): object;
  /** What is added to an event's line. */
  ofEvent(name: string, atMs: number): object;
}

export function jsonLog(version: string, metrics?: LineMetrics): Log {
  const write = (level: string, message: string, fields: object): void => {
    process.stdout.write(`${textOf({ level, message, version, ...fields })}\n`);
  };
  return {
    request: (entry) => {
      const atMs = Date.now();
      write('INFO', 'request', metrics ? metrics.ofRequest(entry, atMs) : { ...origin(atMs), ...entry });
    },
    event: (name, fields) => {
      const atMs = Date.now();
      write('WARN', name, { ...origin(atMs), ...fields, ...metrics?.ofEvent(name, atMs) });
    },
    fault: (requestId, error) =>
      write('ERROR', 'fault', { ...origin(Date.now()), request_id: requestId, ...describeFault(error) }),
  };
}

/** For whoever reads lines elsewhere: CloudWatch has both of its own. */
const origin = (atMs: number): object => ({ timestamp: new Date(atMs).toISOString(), service: 'relay' });

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

/** Frames of an error and of each of its causes. A frame of a bundle has some 60 characters. */
const framesMax = 8;
const causeFramesMax = 2;
const frameCharactersMax = 120;

/** The parts of an error that may be logged: name, code and the first frames; some 2 KB at most. */
export function describeFault(error: unknown, depth = 0): FaultDescription {
  if (!(error instanceof Error)) return { error: typeof error };
  const { name, message, stack, cause } = error;
  const code = 'code' in error ? wordOf(error.code) : undefined;
  const frames = stack === undefined ? undefined : framesOf(stack, message);
  return {
    error: wordOf(name) ?? 'Error',
    ...(code !== undefined && { code }),
    ...(frames && { stack: frames.slice(0, depth === 0 ? framesMax : causeFramesMax) }),
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
    .filter((line) => /^\s+at .*(:\d+:\d+|<anonymous>|native)\)?$/.test(line))
    .map((line) => line.trim().slice(-frameCharactersMax));
}
