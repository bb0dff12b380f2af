/**
 * The log: one JSON line per request, event and fault, written before the call returns. Must never hold a
 * prompt, an answer, a secret or an error message, which may quote any of them.
 */
import { causesMax, storeRequestId } from '../../relay/ports/store-errors.ts';
import type { Log, RequestLog, MetricName, SweepResult, ConfigMetrics } from '../../relay/ports/telemetry.ts';

/** Makes a log line also a metric. Times in epoch milliseconds. */
interface LineMetrics {
  /** The members of a request's line, its time and the metrics included. */
  describeRequest(entry: RequestLog, atMs: number): object;
  /** What is added to an event's line. */
  describeEvent(name: string, atMs: number): object;
}

export function createJsonLog(version: string, metrics?: LineMetrics): Log {
  const write = (level: string, message: string, fields: object): void => {
    process.stdout.write(`${textOf({ level, message, version, ...fields })}\n`);
  };
  return {
    request: (entry) => {
      const atMs = Date.now();
      write(
        'INFO',
        'request',
        metrics ? metrics.describeRequest(entry, atMs) : { ...describeOrigin(atMs), ...entry },
      );
    },
    event: (name, fields) => {
      const atMs = Date.now();
      write('WARN', name, { ...describeOrigin(atMs), ...fields, ...metrics?.describeEvent(name, atMs) });
    },
    fault(requestId, error, fields) {
      const found = describeFault(error);
      write('ERROR', 'fault', { ...describeOrigin(Date.now()), request_id: requestId, ...fields, ...found });
    },
  };
}

/** For whoever reads lines elsewhere: CloudWatch has both of its own. */
const describeOrigin = (atMs: number): object => ({
  timestamp: new Date(atMs).toISOString(),
  service: 'relay',
});

/** Few lines have amounts: with a replacer, all take three times as long. */
function textOf(line: object): string {
  try {
    return JSON.stringify(line);
  } catch {
    return JSON.stringify(line, formatAmount);
  }
}

/** Amounts are bigints, at which JSON.stringify throws. */
const formatAmount = (_name: string, value: unknown): unknown =>
  typeof value === 'bigint' ? value.toString() : value;

interface FaultDescription {
  error: string;
  code?: string;
  store_request_id?: string;
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
  const requestId = depth === 0 ? storeRequestId(error) : undefined;
  const frames = stack === undefined ? undefined : framesOf(stack, message);
  return {
    error: wordOf(name) ?? 'Error',
    ...(code !== undefined && { code }),
    ...(requestId !== undefined && { store_request_id: requestId }),
    ...(frames && { stack: frames.slice(0, depth === 0 ? framesMax : causeFramesMax) }),
    ...(cause !== undefined && depth < causesMax && { cause: describeFault(cause, depth + 1) }),
  };
}

/** Names and codes are single words; any other text may quote foreign content. */
const wordOf = (value: unknown): string | undefined =>
  typeof value === 'string' && /^\w{1,80}$/.test(value) ? value : undefined;

/** Removes the message first, because it may look like frames. */
function framesOf(stack: string, message: string): string[] {
  const trace = message === '' ? stack : stack.replaceAll(message, '');
  return trace
    .split('\n')
    .filter((line) => /^\s+at .*(:\d+:\d+|<anonymous>|native)\)?$/.test(line))
    .map((line) => line.trim().slice(-frameCharactersMax));
}

// Adds CloudWatch metrics to log lines. Dimensions are only stack, channel and outcome, which have few
// values. Accounts, keys and models have many values and stay fields for queries.

/**
 * How a request ended, as a dimension. `client_gone`: the client disconnected before the end. `refused`: a
 * check, a limit of the caller, or the upstream refused the request. `limited`: every channel is
 * rate-limited. `failed`: the relay or an upstream failed.
 */
export const outcomes = ['completed', 'client_gone', 'refused', 'limited', 'failed'] as const;
type Outcome = (typeof outcomes)[number];

/** Codes of failures that can occur after the answer began, with status 200. */
const failureCodes = new Set(['upstream_unavailable', 'upstream_timeout', 'unavailable', 'internal']);

/** Events that need an operator, and their metrics. Each metric has an alarm. */
const eventMetrics = new Map([
  ['settle_lost', 'SettleLost'],
  ['reserve_unknown', 'ReserveUnknown'],
  ['sweep_failed', 'SweepFailed'],
  ['config_format_unknown', 'ConfigFormatUnknown'],
  ['turn_state_lost', 'TurnStateLost'],
  ['response_not_stored', 'ResponsesNotStored'],
  ['charged_above_reserve', 'ChargedAboveReserve'],
]);

/**
 * @param build the function and its version: `chat:12`. Metric filters count by it, so that a deployment can be given up
 */
export function createRequestMetrics(stack: string, build?: string): LineMetrics {
  return {
    describeRequest: (entry, atMs) => {
      const outcome = outcomeOf(entry);
      const channel = entry.channel ?? 'none';
      const numbers = embedMetrics(numbersOf(entry, outcome), atMs);
      return { ...fieldsOf(entry), stack, build, channel, outcome, ...numbers };
    },
    describeEvent: (name, atMs) => {
      const metric = eventMetrics.get(name);
      return metric === undefined ? {} : { stack, build, ...embedMetrics({ [metric]: 1 }, atMs) };
    },
  };
}

/**
 * What the line says of the request beside its metrics. CloudWatch bills each byte, so nothing is said twice: numbers that
 * are metrics, and what an answer without incident always has, are left out.
 */
function fieldsOf(entry: RequestLog): Partial<RequestLog> {
  const { first_content_ms: _first, charge: _charge, end, attempts = [], upstream_status, ...fields } = entry;
  const [only, ...others] = attempts;
  const isPlain = only?.outcome === 'answered' && only.at === undefined && others.length === 0;
  return {
    ...fields,
    ...(end !== 'completed' && { end }),
    ...(!isPlain && attempts.length > 0 && { attempts }),
    ...(upstream_status !== 200 && { upstream_status }),
  };
}

export function outcomeOf({ end, status, code = '', reason = '' }: RequestLog): Outcome {
  if (end === 'completed' || end === 'client_gone') return end;
  if (end === 'counted') return 'completed';
  if (code === 'rate_limit_exceeded') return reason.startsWith('limit_') ? 'refused' : 'limited';
  return status >= 500 || failureCodes.has(code) ? 'failed' : 'refused';
}

/**
 * A count of zero is not written, because each byte and each metric with a value costs: whoever draws a share divides by
 * `Requests` and fills what is missing with 0. `CallFailed` alone is 0 or 1, so that its sum and its number of values are
 * failures and calls: a function of the version before writes neither.
 */
function numbersOf(entry: RequestLog, outcome: Outcome): Record<string, number> {
  const { attempts = [], charge, first_content_ms } = entry;
  const failed = attempts.filter((attempt) => attempt.outcome.startsWith('upstream_'));
  const isFailure = outcome === 'failed' || outcome === 'limited';
  return {
    Requests: 1,
    ...(isFailure && { Failures: 1 }),
    // Refused calls do not count: a flood of wrong keys would hide an outage.
    ...(outcome === 'refused' ? { Refusals: 1 } : { CallFailed: Number(isFailure) }),
    ...(entry.code === 'internal' && { InternalErrors: 1 }),
    ...(failed.length > 0 && { FailedAttempts: failed.length }),
    ...(first_content_ms !== undefined && { FirstContentMs: first_content_ms }),
    ...(charge !== undefined && { ChargeYuan: Number(charge) }),
    ...(entry.usage_estimated && { EstimatedUsage: 1 }),
    ...(entry.usage_implausible && { ImplausibleUsage: 1 }),
  };
}

/** Of metrics that are no counts. */
const units: Record<string, string | undefined> = {
  FirstContentMs: 'Milliseconds',
  ChargeYuan: undefined,
  CallFailed: undefined,
};

const ofStack = [['stack']];
// Not split by outcome, because percentiles of several metrics cannot be combined.
const ofChannel = [['stack'], ['stack', 'channel']];

/**
 * The dimensions of metrics that have more than the stack: names of the line's members. A metric is counted once for each
 * list, and AWS bills each combination of values as a metric.
 */
const dimensionsOf: Record<string, readonly (readonly string[])[]> = {
  Requests: [['stack'], ['stack', 'channel', 'outcome']],
  FirstContentMs: ofChannel,
  ImplausibleUsage: ofChannel,
};

// Counts of functions that serve no requests, as CloudWatch metrics by stack: a log line (EMF) each. What is otherwise 0 is
// not written, because each metric with a value costs.

const createPublisher =
  (stack: string) =>
  (counts: Record<string, number>): void =>
    void process.stdout.write(`${JSON.stringify({ stack, ...embedMetrics(counts, Date.now()) })}\n`);

export function createBackgroundMetrics(stack: string) {
  const publish = createPublisher(stack);
  return {
    count: (name: MetricName) => publish({ [name]: 1 }),
    // `OpenReservations` says also that the sweeper ran.
    countSweep: ({ open, expired }: SweepResult) =>
      publish({ OpenReservations: open, ...(expired > 0 && { ExpiredReservations: expired }) }),
    /** Whether the scheduled call was answered. */
    countCanaryCall: ({ ok }: { ok: boolean }) => publish({ CanarySuccesses: Number(ok) }),
  };
}

/** Of a process that answers many requests at once: its mean over all processes is what their number follows. */
export const createServerMetrics = (stack: string) => ({
  inFlight: (RequestsInFlight: number) => createPublisher(stack)({ RequestsInFlight }),
});

export function createConfigMetrics(stack: string): ConfigMetrics {
  const publish = createPublisher(stack);
  return {
    // `BadRows` ends its alarm with 0, and has the models without a price in it: an alarm of their own would be one more
    // metric to pay for.
    compiled: ({ badRows, warnedRows, unpricedModels }) =>
      publish({
        BadRows: badRows + unpricedModels,
        ...(warnedRows > 0 && { WarnedRows: warnedRows }),
        ...(unpricedModels > 0 && { UnpricedModels: unpricedModels }),
      }),
    badRows: (BadRows) => publish({ BadRows }),
    failed: () => publish({ ConfigCompileFailed: 1 }),
  };
}

/**
 * The metrics of the alarms MoneyWrong, NeedsAPerson and Oddities, and what one of each count adds to them. An alarm on many
 * metrics costs as much as many alarms.
 */
const attentionAlarms: Record<string, { alarm: string; weight: number }> = {
  ...assignAlarm(
    'MoneyWrong',
    'ConservationBroken SettleLost LedgerPoisoned GrantPoisoned ReservationPoisoned',
  ),
  ...assignAlarm(
    'NeedsAPerson',
    'InternalErrors ReserveUnknown ChargedAboveReserve SweepFailed ExpiredReservations AlertUndelivered PaymentParked ConfigCompileFailed',
  ),
  // Its alarm triggers at ten: a throttled write harms one turn, an estimate may be wrong about a single odd text.
  ...assignAlarm('Oddities', 'TurnStateLost ImplausibleUsage ResponsesNotStored'),
  ...assignAlarm('Oddities', 'ConfigFormatUnknown', 10),
};

function assignAlarm(alarm: string, names: string, weight = 1): typeof attentionAlarms {
  return Object.fromEntries(names.split(' ').map((name) => [name, { alarm, weight }]));
}

/**
 * Numbers and what their alarms count as members of a line, and the member `_aws`, by which CloudWatch makes metrics of them
 * (EMF): one group for all with the same dimensions, because each group repeats them.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
function embedMetrics(given: Record<string, number>, atMs: number): object {
  const all = { ...given };
  for (const [name, count] of Object.entries(given)) {
    const asked = count === 0 ? undefined : attentionAlarms[name];
    if (asked) all[asked.alarm] = (all[asked.alarm] ?? 0) + asked.weight;
  }
  const groups = Map.groupBy(Object.keys(all), (name) => dimensionsOf[name] ?? ofStack);
  const CloudWatchMetrics = [...groups].map(([Dimensions, names]) => ({
    Namespace: 'relay',
    Dimensions,
    Metrics: names.map((Name) => ({ Name, Unit: Name in units ? units[Name] : 'Count' })),
  }));
  return { ...all, _aws: { Timestamp: atMs, CloudWatchMetrics } };
}
