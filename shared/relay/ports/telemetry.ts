/** Log lines and metrics. They must never hold a prompt, an answer, a secret or text of an upstream. */

/** The fields of a request's log line; one line per request. */
export interface RequestLog {
  request_id: string;
  endpoint: string;
  status: number;
  /** How the request ended: `completed`, `refused`, `failed`, `client_gone`. */
  end: string;
  duration_ms: number;
  code?: string | undefined;
  /**
   * The reason, not shown to the client, such as `key_disabled` or `upstream_html`. Quotes no foreign text.
   */
  reason?: string | undefined;
  key_hint?: string | undefined;
  account?: string | undefined;
  /** The model that answered, or was tried last; of a refused request, as it was asked for. */
  model?: string | undefined;
  /** The alias that was asked for. */
  alias?: string | undefined;
  channel?: string | undefined;
  /** Number of declared tools that were dropped because no chat upstream supports them. */
  dropped_tools?: number | undefined;
  /** The client's fields that the upstream was not sent. */
  dropped?: string[] | undefined;
  /** `web-` calls only: `found`, `empty`, `none`, `no_query`, `timeout` or `failed`. */
  search?: string | undefined;
  attempts?: { channel: string; outcome: string }[] | undefined;
  upstream_status?: number | undefined;
  first_content_ms?: number | undefined;
  prompt_tokens?: number | undefined;
  completion_tokens?: number | undefined;
  /** Prompt tokens that the upstream read from its cache and wrote to it; absent: none. */
  cached_tokens?: number | undefined;
  cache_write_tokens?: number | undefined;
  cache_write_1h_tokens?: number | undefined;
  usage_estimated?: boolean | undefined;
  /** Which counts are estimates, and why: see `UsageFault`. Absent: none. */
  usage_flag?: string | undefined;
  /** The upstream's counts were expected and not plausible, so its channel needs an operator. */
  usage_implausible?: boolean | undefined;
  /** What the upstream reported, if any of it was not used. */
  reported_input?: number | undefined;
  reported_output?: number | undefined;
  /** The charge in yuan, as an exact decimal. */
  charge?: string | undefined;
  plan_slot?: string | undefined;
  /** What lowered the limit on output tokens to `max_tokens`. */
  limited_by?: 'balance' | 'budget' | undefined;
  max_tokens?: number | undefined;
  /** An answer ended at a limit that was lowered. */
  limit_reached?: boolean | undefined;
}

export interface Log {
  request(entry: RequestLog): void;
  /**
   * Logs a named event that operators or tools act on. Fields hold ids, amounts and fixed words, never
   * foreign text.
   */
  event(name: string, fields: Record<string, unknown>): void;
  /**
   * Logs an unexpected error by name, code and frames, never by its message, which may quote foreign text.
   */
  fault(requestId: string, error: unknown): void;
}

export interface Explaining {
  /** Logs why a call ended as it did. Fields hold ids, names of rows, fixed words and numbers, never foreign text. */
  explain(fields: object): void;
}

/** Each of these metrics has an alarm, because it needs an operator. */
export const metricNames = [
  'ConservationBroken',
  'LedgerPoisoned',
  'GrantPoisoned',
  'ReservationPoisoned',
  'AlertUndelivered',
  'PaymentParked',
] as const;
export type MetricName = (typeof metricNames)[number];

export interface Metrics {
  /** Adds 1 to the metric. */
  count(name: MetricName): void;
}

export interface CanaryMetrics {
  /** Counts whether the scheduled call was answered. */
  called(result: { ok: boolean }): void;
}

/** The result of a sweep: reservations still open after it, and reservations that it closed. */
export interface SweepResult {
  open: number;
  expired: number;
}

export interface SweepMetrics {
  swept(result: SweepResult): void;
}

/** The metrics of the configuration's publisher. `badRows` and `failed` have an alarm each. */
export interface ConfigMetrics {
  compiled(counts: { badRows: number; warnedRows: number; unpricedModels: number }): void;
  /** Counts newly written rows of keys and accounts that have a problem. */
  badRows(count: number): void;
  failed(): void;
}
