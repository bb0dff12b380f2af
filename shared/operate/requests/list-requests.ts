/** View: the requests of a time, from the log. */
import type { Attribution } from '../../billing/ledger-row.ts';
import type { LogSearch, OperatorPorts, LogCondition, LogSource } from '../operator-ports.ts';
import { usageFailure } from '../plan.ts';
import { slowMs } from '../../relay/ports/telemetry.ts';
import type { RequestLine } from './explain-request.ts';

export type ListedRequest = Awaited<ReturnType<typeof listRequests>>['requests'][number];

export async function listRequests({ log }: OperatorPorts, search: LogSearch) {
  const { lines, scannedBytes } = await log.search(search);
  const requests = lines.map(({ atMs, fields }) => {
    const line: RequestLine = fields;
    return { at: new Date(atMs).toISOString(), line };
  });
  return { requests, scannedBytes };
}

export const requestStatuses = ['failed', 'refused', 'retried', 'slow'] as const;
export type RequestStatus = (typeof requestStatuses)[number];

/** `slowerThanMs`: only those that took longer in all. */
interface AskedRequests extends Attribution, Record<'account' | 'model' | 'channel', string | undefined> {
  status: RequestStatus | undefined;
  slowerThanMs: number | undefined;
  fromMs: number;
  toMs: number;
  limit: number;
}

const isRequest: LogCondition = { field: 'message', isOneOf: ['request'] };

const ofStatus: Record<RequestStatus, LogCondition[]> = {
  failed: [isRequest, { field: 'outcome', isOneOf: ['failed', 'limited'] }],
  refused: [isRequest, { field: 'outcome', isOneOf: ['refused'] }],
  retried: [isRequest, { field: 'retries', above: 0 }],
  slow: [isRequest, { field: 'FirstContentMs', above: slowMs }],
};

/** Of CloudWatch Logs Insights. */
const limitMax = 10_000;

/** Throws a Failure. Asked before anything is said of the search, so that no log is read for nothing. */
export function requestSearch(asked: AskedRequests): LogSearch {
  const { status, slowerThanMs, fromMs, toMs, limit, tags = {}, ...names } = asked;
  if (!Number.isInteger(limit) || limit < 1 || limit > limitMax)
    throw usageFailure(`--limit: found ${limit}, wanted a whole number from 1 to 10,000`);
  if (fromMs < 0) throw usageFailure('--since: wanted a time after 1970');
  if (fromMs >= toMs) throw usageFailure('--since: wanted a time before now, and before --until');
  if (status === 'slow' && slowerThanMs !== undefined)
    throw usageFailure('--slower-than has its own measure: give it without --status slow');
  const slow: LogCondition[] =
    slowerThanMs === undefined ? [] : [{ field: 'duration_ms', above: slowerThanMs }];
  const own: LogCondition[] = status ? ofStatus[status] : [isRequest];
  const tagged = Object.entries(tags).map(([tag, value]) => [`tags.${tag}`, value] as const);
  const named = [...Object.entries(names), ...tagged].flatMap(([field, name]): LogCondition[] =>
    name === undefined ? [] : [{ field, isOneOf: [name] }],
  );
  return { fromMs, toMs, conditions: [...own, ...slow, ...named], limit };
}

/**
 * About how much a search of the log will read: of what each group holds, the share of its time. Reads nothing. Undefined: it is
 * not known.
 */
export function expectedBytes(
  { kept }: LogSource,
  { fromMs, toMs }: { fromMs: number; toMs: number },
  nowMs: number,
): number | undefined {
  if (!kept || kept.every(({ bytes }) => bytes === 0)) return undefined;
  const shares = kept.map(({ bytes, sinceMs }) => {
    const spanMs = Math.max(1, nowMs - sinceMs);
    const askedMs = Math.min(toMs, nowMs) - Math.max(fromMs, sinceMs);
    return bytes * Math.min(1, Math.max(0, askedMs / spanMs));
  });
  return Math.ceil(shares.reduce((sum, share) => sum + share, 0));
}
