/**
 * Adds CloudWatch metrics to log lines. Dimensions are only stack, channel and outcome, which have few
 * values. Accounts, keys and models have many values and stay fields for queries.
 */
import type { RequestLog } from '../../relay/ports/telemetry.ts';
import { embedded, withAttention, type MetricGroup, type MetricUnit } from './embedded-metric.ts';
import type { LineMetrics } from './json-log.ts';

/**
 * How a request ended, as a dimension. `client_gone`: the client disconnected before the end. `refused`: a
 * check, a limit of the caller, or the upstream refused the request. `limited`: every channel is
 * rate-limited. `failed`: the relay or an upstream failed.
 */
export const outcomes = ['completed', 'client_gone', 'refused', 'limited', 'failed'] as const;
export type Outcome = (typeof outcomes)[number];

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
export function requestMetrics(stack: string, build?: string): LineMetrics {
  return {
    ofRequest: (entry, atMs) => {
      const outcome = outcomeOf(entry);
      const channel = entry.channel ?? 'none';
      const numbers = withAttention(numbersOf(entry, outcome));
      const _aws = embedded(atMs, groupsOf(numbers));
      return { ...fieldsOf(entry), stack, build, channel, outcome, ...numbers, _aws };
    },
    ofEvent: (name, atMs) => {
      const metric = eventMetrics.get(name);
      if (metric === undefined) return {};
      const counts = withAttention({ [metric]: 1 });
      const metrics = Object.fromEntries(Object.keys(counts).map((each) => [each, 'Count' as const]));
      return { stack, build, ...counts, _aws: embedded(atMs, [{ dimensions: [['stack']], metrics }]) };
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
  const isPlain = only?.outcome === 'answered' && others.length === 0;
  return {
    ...fields,
    ...(end !== 'completed' && { end }),
    ...(!isPlain && attempts.length > 0 && { attempts }),
    ...(upstream_status !== 200 && { upstream_status }),
  };
}

export function outcomeOf({ end, status, code = '', reason = '' }: RequestLog): Outcome {
  if (end === 'completed' || end === 'client_gone') return end;
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

const units: Record<string, MetricUnit> = {
  FirstContentMs: 'Milliseconds',
  ChargeYuan: 'None',
  CallFailed: 'None',
};

const ofStack = [['stack']];
// Not split by outcome, because percentiles of several metrics cannot be combined.
const ofChannel = [['stack'], ['stack', 'channel']];

/** The dimensions of metrics that have more than the stack. */
const dimensionsOf: Record<string, readonly (readonly string[])[]> = {
  Requests: [['stack'], ['stack', 'channel', 'outcome']],
  FirstContentMs: ofChannel,
  ImplausibleUsage: ofChannel,
};

/** One group for all metrics with the same dimensions, because each group repeats them. */
function groupsOf(numbers: Record<string, number>): MetricGroup[] {
  const byDimensions = Map.groupBy(Object.keys(numbers), (name) => dimensionsOf[name] ?? ofStack);
  return [...byDimensions].map(([dimensions, names]) => ({
    dimensions,
    metrics: Object.fromEntries(names.map((name) => [name, units[name] ?? 'Count'])),
  }));
}
