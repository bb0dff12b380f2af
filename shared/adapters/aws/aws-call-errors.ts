/** Failures of calls of AWS's services. A refusal has its service's text, so it must never reach a client or the log whole. */
import type { IncomingHttpHeaders } from 'node:http';

/** There was no reply, or none that can be trusted. */
export class NoReply extends Error {
  override readonly name = 'NoReply';
  readonly code: string;
  /** The service may have carried the call out. */
  readonly sent: boolean;
  /** The connection was a kept one, which the service may have closed before. */
  readonly wasKept: boolean;

  constructor(code: string, { sent, wasKept = false }: { sent: boolean; wasKept?: boolean }) {
    super(`No reply (${code}).`);
    this.code = code;
    this.sent = sent;
    this.wasKept = wasKept;
  }
}

/** The service refused the call or failed. Has all members of its error, and its status as the SDK's errors have it. */
export class ServiceRefusal extends Error {
  readonly $metadata: { httpStatusCode: number };
  /** By how much the service's clock is ahead, in milliseconds. Undefined: it did not say. */
  readonly clockAheadMs: number | undefined;

  constructor(
    { status, headers }: { status: number; headers: IncomingHttpHeaders },
    members: Record<string, unknown>,
  ) {
    const { message, Message = message, __type, code, ...rest } = members;
    super(typeof Message === 'string' ? Message : 'unknown');
    Object.assign(this, rest);
    this.name = errorName(__type ?? code ?? headers['x-amzn-errortype']);
    this.$metadata = { httpStatusCode: status };
    const aheadMs = Date.parse(headers.date ?? '') - Date.now();
    this.clockAheadMs = Number.isNaN(aheadMs) ? undefined : aheadMs;
  }
}

/** `com.amazonaws.dynamodb.v20120810#Name` and `Name:http://...` are both the error `Name`. */
function errorName(code: unknown): string {
  const [first = ''] = (typeof code === 'string' ? code : 'Unknown').split(/[,:]/);
  return first.split('#').at(-1) ?? first;
}

/** Errors that a service returns before it changes anything; a retry of the same call may succeed. */
export const busyNames: ReadonlySet<string> = new Set([
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'ThrottlingException',
  'TransactionConflictException',
  'TransactionInProgressException',
]);

/** Whether the same call may succeed a moment later. */
export const mayPass = (error: unknown): boolean =>
  error instanceof NoReply ||
  (error instanceof ServiceRefusal && (error.$metadata.httpStatusCode >= 500 || busyNames.has(error.name)));

const clockErrors: ReadonlySet<string> = new Set([
  'AuthFailure',
  'InvalidSignatureException',
  'RequestExpired',
  'RequestInTheFuture',
  'RequestTimeTooSkewed',
  'SignatureDoesNotMatch',
]);
/** A clock that differs by less is not why a signature was refused: AWS accepts 5 minutes. */
const skewMsMin = 4 * 60_000;

/** The service's clock, if that is why it refused a call: milliseconds by which it is ahead of ours. */
export function skewIn(error: unknown, assumedMs: number): number | undefined {
  if (!(error instanceof ServiceRefusal) || !clockErrors.has(error.name)) return undefined;
  const { clockAheadMs = assumedMs } = error;
  return Math.abs(clockAheadMs - assumedMs) < skewMsMin ? undefined : clockAheadMs;
}

/** The credentials have ended, or are not known any more. The service did not look at the call. */
export const refusesCredentials = (error: unknown): boolean =>
  error instanceof ServiceRefusal &&
  (error.name === 'ExpiredTokenException' || error.name === 'UnrecognizedClientException');
