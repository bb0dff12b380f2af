/**
 * Adds CloudWatch metrics to log lines. Dimensions are only stack, channel and outcome, which have few
 * values. Accounts, keys and models have many values and stay fields for queries.
 */
import type { RequestLog } from '../../relay/ports/telemetry.ts';
import { embedded, withAttention, type MetricGroup } from './embedded-metric.ts';
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
      return { stack, build, channel, outcome, ...numbers, _aws };
    },
    ofEvent: (name, atMs) => {
      const metric = eventMetrics.get(name);
      if (metric === undefined) return {};
      const counts = withAttention({ [metric]: 1 });
      const metrics = Object.fromEntries(Object.keys(counts).map((each) => [each, 'Count' as const]));
      return { stack, build, ...counts, _aws: embedded(atMs, [{ dimensions: ['stack'], metrics }]) };
    },
  };
}

export function outcomeOf({ end, status, code = '', reason = '' }: RequestLog): Outcome {
  if (end === 'completed' || end === 'client_gone') return end;
  if (code === 'rate_limit_exceeded') return reason.startsWith('limit_') ? 'refused' : 'limited';
  return status >= 500 || failureCodes.has(code) ? 'failed' : 'refused';
}

/** Includes zeros, because a rate is the average of ones and zeros. */
function numbersOf(entry: RequestLog, outcome: Outcome): Record<string, number> {
  const { attempts = [], charge, completion_tokens, duration_ms, first_content_ms, prompt_tokens } = entry;
  const failed = attempts.filter((attempt) => attempt.outcome.startsWith('upstream_'));
  return {
    Requests: 1,
    Failures: Number(outcome === 'failed' || outcome === 'limited'),
    Refusals: Number(outcome === 'refused'),
    InternalErrors: Number(entry.code === 'internal'),
    FailedAttempts: failed.length,
    DurationMs: duration_ms,
    ...(first_content_ms !== undefined && { FirstContentMs: first_content_ms }),
    ...(charge !== undefined && { ChargeYuan: Number(charge) }),
    ...(prompt_tokens !== undefined && { PromptTokens: prompt_tokens }),
    ...(completion_tokens !== undefined && { CompletionTokens: completion_tokens }),
    ...(entry.usage_estimated !== undefined && { EstimatedUsage: Number(entry.usage_estimated) }),
    ...(entry.usage_implausible && { ImplausibleUsage: 1 }),
  };
}

const units = { DurationMs: 'Milliseconds', FirstContentMs: 'Milliseconds', ChargeYuan: 'None' } as const;

const unitOf = (name: string): MetricGroup['metrics'][string] => units[name as keyof typeof units] ?? 'Count';

function groupsOf(numbers: Record<string, number>): MetricGroup[] {
  const groups: MetricGroup[] = [
    {
      dimensions: ['stack'],
      metrics: Object.fromEntries(Object.keys(numbers).map((name) => [name, unitOf(name)])),
    },
    { dimensions: ['stack', 'channel', 'outcome'], metrics: { Requests: 'Count' } },
  ];
  // Not split by outcome, because percentiles of several metrics cannot be combined.
  const ofChannel = ['FirstContentMs', 'ImplausibleUsage'].filter((name) => name in numbers);
  if (ofChannel.length > 0)
    groups.push({
      dimensions: ['stack', 'channel'],
      metrics: Object.fromEntries(ofChannel.map((name) => [name, unitOf(name)])),
    });
  return groups;
}
