/**
 * View: the requests of a time, from the log: refused and failed ones are nowhere else. Listed and counted once, or watched: looked
 * at again and again, each look at a bounded time and number.
 */
import type { Attribution } from '../../billing/ledger-row.ts';
import type { LineCount, LogCondition, LogSearch, LogSource, OperatorPorts } from '../operator-ports.ts';
import { Failure, usageFailure } from '../plan.ts';
import { slowMs } from '../../relay/ports/telemetry.ts';
import type { RequestLine } from './explain-request.ts';

export type ListedRequest = Awaited<ReturnType<typeof listRequests>>['requests'][number];

export async function listRequests({ log }: OperatorPorts, search: LogSearch) {
  const { lines, scannedBytes } = await log.search(search);
  const requests = lines.map(({ atMs, fields }) => {
    const line: RequestLine = fields;
    return { atMs, at: new Date(atMs).toISOString(), line };
  });
  return { requests, scannedBytes };
}

/**
 * The ten fields that a channel's customers sent most often in the last day and it was not sent, with how many of up to 1,000 calls had each.
 * Undefined: the log can't be read.
 */
export async function countDroppedFields({ log, clock }: OperatorPorts, channel: string) {
  const toMs = clock.now();
  const dropping: LogCondition[] = [
    { field: 'channel', isOneOf: [channel] },
    { field: 'dropped_count', above: 0 },
  ];
  const search = { fromMs: toMs - longestMs, toMs, conditions: [isRequest, ...dropping], limit: 1_000 };
  try {
    if (!(await log.source())) return undefined;
    const { lines } = await log.search(search);
    const names = Map.groupBy(
      lines.flatMap(({ fields }) => (fields as RequestLine).dropped ?? []),
      (name) => name,
    );
    const counted = [...names].map(([name, { length: calls }]) => ({ name, calls }));
    return counted.toSorted((a, b) => b.calls - a.calls).slice(0, 10);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

const statusNames = ['failed', 'refused', 'retried', 'slow'] as const;
export const requestStatuses: readonly RequestStatus[] = [
  ...statusNames,
  ...[400, 401, 403, 404, 409, 413, 415, 429, 499, 500, 502, 503, 504].map((status) => `${status}` as const),
];
export type RequestStatus = (typeof statusNames)[number] | `${number}`;

type AskedName = 'account' | 'model' | 'channel' | 'key_hint';

/** `slowerThanMs`: only those that took longer in all. */
export interface AskedRequests extends Attribution, Record<AskedName, string | undefined> {
  status: RequestStatus | undefined;
  slowerThanMs?: number | undefined;
  fromMs: number;
  toMs: number;
  limit: number;
}

const isRequest: LogCondition = { field: 'message', isOneOf: ['request'] };

const ofStatus: Record<(typeof statusNames)[number], LogCondition> = {
  failed: { field: 'outcome', isOneOf: ['failed', 'limited'] },
  refused: { field: 'outcome', isOneOf: ['refused'] },
  retried: { field: 'retries', above: 0 },
  slow: { field: 'FirstContentMs', above: slowMs },
};

const isName = (status: RequestStatus): status is keyof typeof ofStatus => status in ofStatus;

/** The limit of CloudWatch Logs Insights. */
const limitMax = 10_000;

/** Throws a Failure. Asked before anything is said of the search, so that no log is read for nothing. */
export function requestSearch(asked: AskedRequests): LogSearch {
  const { status, slowerThanMs, fromMs, toMs, limit, tags = {}, ...names } = asked;
  if (!Number.isInteger(limit) || limit < 1 || limit > limitMax)
    throw usageFailure('--limit: use a whole number from 1 to 10,000');
  if (fromMs < 0) throw usageFailure('--since: use a time after 1970');
  if (fromMs >= toMs) throw usageFailure('--since: use a time in the past, before --until');
  if (status === 'slow' && slowerThanMs !== undefined)
    throw usageFailure("--slower-than: can't be combined with --status slow");
  const own: LogCondition[] =
    status === undefined ? [] : [isName(status) ? ofStatus[status] : { field: 'status', is: Number(status) }];
  if (slowerThanMs !== undefined) own.push({ field: 'duration_ms', above: slowerThanMs });
  const tagged = Object.entries(tags).map(([tag, value]) => [`tags.${tag}`, value] as const);
  const named = [...Object.entries(names), ...tagged].flatMap(([field, name]): LogCondition[] =>
    name === undefined ? [] : [{ field, isOneOf: [name] }],
  );
  return { fromMs, toMs, conditions: [isRequest, ...own, ...named], limit };
}

/** How requests of a step of time ended. `startMs` is a multiple of the step since 1970. */
export interface RequestPoint extends Record<'answered' | 'refused' | 'failed', number> {
  startMs: number;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const pointsMax = 72;
const stepsMs = [minuteMs / 4, minuteMs, 5 * minuteMs, 30 * minuteMs, 3 * hourMs, 12 * hourMs] as const;
const longestMs = 24 * hourMs;

const stepOf = ({ fromMs, toMs }: TimeRange): number =>
  stepsMs.find((step) => (toMs - fromMs) / step <= pointsMax) ?? longestMs;

type TimeRange = Record<'fromMs' | 'toMs', number>;

const groupByOutcome = (stepMs: number) => ({ stepMs, field: 'outcome' });

/** Newest first, with what all of them came to. */
export async function viewRequests(ports: OperatorPorts, search: LogSearch) {
  const stepMs = stepOf(search);
  const [found, counted] = await Promise.all([
    listRequests(ports, search),
    ports.log.counts(search, groupByOutcome(stepMs)),
  ]);
  return {
    requests: found.requests.toReversed(),
    points: pointsOf(counted.counts, search, stepMs),
    scannedBytes: found.scannedBytes + counted.scannedBytes,
  };
}

/** One point per step, in order; docs/observability.md defines the outcomes. */
function pointsOf(counts: readonly LineCount[], { fromMs, toMs }: TimeRange, stepMs: number): RequestPoint[] {
  const first = Math.floor(fromMs / stepMs);
  const points = Array.from({ length: Math.ceil(toMs / stepMs) - first }, (_, index) => ({
    startMs: (first + index) * stepMs,
    answered: 0,
    refused: 0,
    failed: 0,
  }));
  for (const { startMs, value, count } of counts) {
    const point = points[Math.floor(startMs / stepMs) - first];
    const name =
      value === 'refused' ? 'refused' : ['failed', 'limited'].includes(value) ? 'failed' : 'answered';
    if (point) point[name] += count;
  }
  return points;
}

/** The refused calls of the last hour, by the code that the client got, the most first. On AWS it reads the log of that hour. */
export async function countRefusedCalls({ clock, log }: OperatorPorts) {
  const toMs = clock.now();
  const search = { fromMs: toMs - hourMs, toMs, conditions: [isRequest, ofStatus.refused], limit: 1 };
  const { counts, scannedBytes } = await log.counts(search, { stepMs: hourMs, field: 'code' });
  const codes = [...Map.groupBy(counts, ({ value }) => value)].map(([code, all]) => ({
    code,
    calls: all.reduce((sum, { count }) => sum + count, 0),
  }));
  return { codes: codes.toSorted((a, b) => b.calls - a.calls).slice(0, codesMax), scannedBytes };
}

/** About what an hour of counting them costs. */
export const estimateRefusedBytes = (source: LogSource, nowMs: number): number | undefined => {
  const bytes = estimateBytes(source, { fromMs: nowMs - hourMs, toMs: nowMs }, nowMs);
  return bytes === undefined ? undefined : bytes * (hourMs / refusedMs);
};

export const refusedMs = 5 * minuteMs;
const codesMax = 15;

/**
 * Two paces. On one machine a look costs nothing, and a line is there at once. CloudWatch finds a line up to some two minutes after it
 * was written, and bills what it reads, so each look goes back three minutes.
 */
const paceOf = ({ target }: OperatorPorts) =>
  target.local ? { everyMs: 1_000, lateMs: 5_000 } : { everyMs: 15_000, lateMs: 3 * minuteMs };

/** More new lines in one look cannot be read by a person. The counts include all. */
const seenAtOnce = 100;

/**
 * Requests as they end. What it keeps is bounded: the ids of one look, the counts of the time that is shown.
 * @param asked `fromMs` to `toMs` is how much time the counts are of; the first look lists what ended after `sinceMs`
 */
export function watchRequests(ports: OperatorPorts, asked: AskedRequests, sinceMs: number) {
  const { conditions } = requestSearch(asked);
  const { everyMs, lateMs } = paceOf(ports);
  const spanMs = asked.toMs - asked.fromMs;
  const stepMs = stepOf(asked);
  let seen: ReadonlySet<string> = new Set();
  let counts: readonly LineCount[] = [];
  let scannedBytes = 0;
  let countedMs = 0;
  let listedMs = sinceMs;

  return {
    everyMs,
    async look() {
      const nowMs = ports.clock.now();
      const range = { fromMs: nowMs - spanMs, toMs: nowMs };
      const listed = {
        fromMs: Math.max(listedMs - lateMs, range.fromMs),
        toMs: nowMs,
        conditions,
        limit: seenAtOnce,
      };
      // Whole steps are counted anew, those that a late line may still come to.
      const from = Math.floor(Math.max(countedMs - lateMs, range.fromMs) / stepMs) * stepMs;
      const [found, counted] = await Promise.all([
        listRequests(ports, listed),
        ports.log.counts({ ...listed, fromMs: from }, groupByOutcome(stepMs)),
      ]);
      const requests = found.requests.filter(({ line }) => !seen.has(String(line.request_id))).toReversed();
      seen = new Set(found.requests.map(({ line }) => String(line.request_id)));
      counts = [
        ...counts.filter(({ startMs }) => startMs < from && startMs >= range.fromMs - stepMs),
        ...counted.counts,
      ];
      [countedMs, listedMs] = [nowMs, nowMs];
      scannedBytes += found.scannedBytes + counted.scannedBytes;
      // Those that no look before had, newest first; the bytes are of all looks.
      return { requests, points: pointsOf(counts, range, stepMs), nowMs, scannedBytes };
    },
  };
}

/** Estimates the bytes that a search of the log will read from each group's size and age. Reads nothing. */
export function estimateBytes(
  { kept }: LogSource,
  { fromMs, toMs }: TimeRange,
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

/** About how much an hour of watching reads: each look lists and counts its time, the first one of a quarter of an hour all of it. */
export function estimateWatchBytes(
  ports: OperatorPorts,
  source: LogSource,
  asked: AskedRequests,
): number | undefined {
  const { everyMs, lateMs } = paceOf(ports);
  const nowMs = ports.clock.now();
  const estimateTime = (ms: number) => estimateBytes(source, { fromMs: nowMs - ms, toMs: nowMs }, nowMs);
  const [look, whole] = [estimateTime(lateMs + stepOf(asked)), estimateTime(asked.toMs - asked.fromMs)];
  return look === undefined || whole === undefined
    ? undefined
    : 2 * (hourMs / everyMs) * look + (hourMs / watchMs) * whole;
}

/** How long one watch goes on before it begins anew. */
export const watchMs = 15 * minuteMs;

/** AWS's price in most regions: https://aws.amazon.com/cloudwatch/pricing/ */
const dollarsPerByte = 0.005e-9;

export const formatMegabytes = (bytes: number): string =>
  bytes < 1e9 ? `${(bytes / 1e6).toFixed(bytes < 10e6 ? 2 : 0)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;

/** `13 MB ($0.000065)`. */
export const formatLogCost = (bytes: number | undefined): string =>
  bytes === undefined
    ? 'not known yet; CloudWatch bills 0.005 dollars for each GB'
    : `${formatMegabytes(bytes)} ($${Number((bytes * dollarsPerByte).toPrecision(2))})`;
