import { Logger } from '@aws-lambda-powertools/logger';
import type { Log } from '../relay/ports.ts';

/** One JSON line per request, and one per fault of ours, on the function's log. */
export function powertoolsLog(version: string): Log {
  const logger = new Logger({ serviceName: 'relay', logLevel: 'INFO', persistentKeys: { version } });
  return {
    request: (entry) => logger.info('request', { ...entry }),
    event: (name, fields) => logger.warn(name, { ...fields }),
    fault: (requestId, error) => logger.error('fault', { request_id: requestId, ...describeFault(error) }),
  };
}

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
