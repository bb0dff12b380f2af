/**
 * Writes one JSON line per request, event and fault before the call returns. Must never hold a prompt, an answer, a secret
 * or an error message, which may quote any of them.
 */
import { causesMax, storeRequestId } from '../../relay/ports/store-errors.ts';
import type { Log, RequestLog, MetricName, SweepResult, ConfigMetrics } from '../../relay/ports/telemetry.ts';

/** Adds metrics to log lines. Times in epoch milliseconds. */
interface LineMetrics {
  describeRequest(entry: RequestLog, atMs: number): object;
  describeEvent(name: string, atMs: number): object;
}

export function createJsonLog(version: string, metrics?: LineMetrics): Log {
  const write = (level: string, message: string, fields: object): void => {
    process.stdout.write(`${stringifyLine({ level, message, version, ...fields })}\n`);
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

/** For other log readers: CloudWatch adds both itself. */
const describeOrigin = (atMs: number): object => ({
  timestamp: new Date(atMs).toISOString(),
  service: 'relay',
});

/** A replacer would make all lines three times as slow, and few have amounts. */
function stringifyLine(line: object): string {
  try {
    return JSON.stringify(line);
  } catch {
    return JSON.stringify(line, formatAmount);
  }
}

const formatAmount = (_name: string, value: unknown): unknown =>
  typeof value === 'bigint' ? value.toString() : value;

interface FaultDescription {
  error: string;
  code?: string;
  store_request_id?: string;
  stack?: string[];
  cause?: FaultDescription;
}

const framesMax = 8;
const causeFramesMax = 2;
const frameCharactersMax = 120;

/** Keeps name, code and the first frames, about 2 KB, and nothing that may quote content. */
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

/** Names and codes are single words. Other text may quote foreign content. */
const wordOf = (value: unknown): string | undefined =>
  typeof value === 'string' && /^\w{1,80}$/.test(value) ? value : undefined;

/** The message may look like frames, so it is removed. */
function framesOf(stack: string, message: string): string[] {
  const trace = message === '' ? stack : stack.replaceAll(message, '');
  return trace
    .split('\n')
    .filter((line) => /^\s+at .*(:\d+:\d+|<anonymous>|native)\)?$/.test(line))
    .map((line) => line.trim().slice(-frameCharactersMax));
}

// CloudWatch metrics. Dimensions are only stack, channel and outcome, which have few values. Accounts, keys and models stay
// fields for queries.

/**
 * A dimension of metrics. `refused`: by a check, a limit of the caller, or the upstream. `limited`: every channel is
 * rate-limited. `failed`: the relay or an upstream failed.
 */
export const outcomes = ['completed', 'client_gone', 'refused', 'limited', 'failed'] as const;
type Outcome = (typeof outcomes)[number];

/** Failures that can follow after the answer began, with status 200. */
const failureCodes = new Set(['upstream_unavailable', 'upstream_timeout', 'unavailable', 'internal']);

/** Events that need an operator. Each metric has an alarm. */
export const eventMetrics = new Map([
  ['settle_lost', 'SettleLost'],
  ['reserve_unknown', 'ReserveUnknown'],
  ['sweep_failed', 'SweepFailed'],
  ['config_format_unknown', 'ConfigFormatUnknown'],
  ['turn_state_lost', 'TurnStateLost'],
  ['response_not_stored', 'ResponsesNotStored'],
  ['charged_above_reserve', 'ChargedAboveReserve'],
]);

/** @param build function and version, like `chat:12`: a bad deployment is detected by it */
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
 * The fields beside the metrics. CloudWatch bills each byte, so metric values and the defaults of a normal answer are left
 * out.
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
 * Zero counts are left out, because each byte and each value costs. `CallFailed` is always 0 or 1, so that its sum and its
 * count are failures and calls.
 */
function numbersOf(entry: RequestLog, outcome: Outcome): Record<string, number> {
  const { attempts = [], charge, first_content_ms } = entry;
  const failed = attempts.filter((attempt) => attempt.outcome.startsWith('upstream_'));
  const isFailure = outcome === 'failed' || outcome === 'limited';
  return {
    Requests: 1,
    ...(isFailure && { Failures: 1 }),
    // Refused calls do not count, or a flood of invalid keys would hide an outage.
    ...(outcome === 'refused' ? { Refusals: 1 } : { CallFailed: Number(isFailure) }),
    ...(entry.code === 'internal' && { InternalErrors: 1 }),
    ...(failed.length > 0 && { FailedAttempts: failed.length }),
    ...(first_content_ms !== undefined && { FirstContentMs: first_content_ms }),
    ...(charge !== undefined && { ChargeYuan: Number(charge) }),
    ...(entry.usage_estimated && { EstimatedUsage: 1 }),
    ...(entry.usage_implausible && { ImplausibleUsage: 1 }),
  };
}

const units: Record<string, string | undefined> = {
  FirstContentMs: 'Milliseconds',
  ChargeYuan: undefined,
  CallFailed: undefined,
};

const ofStack = [['stack']];
// Not split by outcome, because percentiles of several metrics cannot be combined.
const ofChannel = [['stack'], ['stack', 'channel']];

/** Metrics with more dimensions than the stack. AWS bills each combination of values as a metric. */
const dimensionsOf: Record<string, readonly (readonly string[])[]> = {
  Requests: [['stack'], ['stack', 'channel', 'outcome']],
  FirstContentMs: ofChannel,
  ImplausibleUsage: ofChannel,
};

// Metrics of functions without requests, a log line (EMF) each. Zeros are left out where possible, because each value costs.

const createPublisher =
  (stack: string) =>
  (counts: Record<string, number>): void =>
    void process.stdout.write(`${JSON.stringify({ stack, ...embedMetrics(counts, Date.now()) })}\n`);

export function createBackgroundMetrics(stack: string) {
  const publish = createPublisher(stack);
  return {
    count: (name: MetricName) => publish({ [name]: 1 }),
    // `OpenReservations` also shows that the sweeper ran.
    countSweep: ({ open, expired }: SweepResult) =>
      publish({ OpenReservations: open, ...(expired > 0 && { ExpiredReservations: expired }) }),
    countCanaryCall: ({ ok }: { ok: boolean }) => publish({ CanarySuccesses: Number(ok) }),
  };
}

/** Servers scale by its mean over all processes. */
export const createServerMetrics = (stack: string) => ({
  inFlight: (RequestsInFlight: number) => createPublisher(stack)({ RequestsInFlight }),
});

export function createConfigMetrics(stack: string): ConfigMetrics {
  const publish = createPublisher(stack);
  return {
    // `BadRows` is written as 0 to end its alarm. It includes models without a price, which saves the cost of another alarm.
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
 * Weights of counts in the alarms MoneyWrong, NeedsAPerson and Oddities. One alarm on many metrics costs as much as many
 * alarms.
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
  // This alarm triggers at ten: single cases are harmless.
  ...assignAlarm('Oddities', 'TurnStateLost ImplausibleUsage ResponsesNotStored'),
  ...assignAlarm('Oddities', 'ConfigFormatUnknown', 10),
};

function assignAlarm(alarm: string, names: string, weight = 1): typeof attentionAlarms {
  return Object.fromEntries(names.split(' ').map((name) => [name, { alarm, weight }]));
}

/**
 * Adds numbers, their alarm counts, and `_aws` (EMF), from which CloudWatch makes metrics.
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
