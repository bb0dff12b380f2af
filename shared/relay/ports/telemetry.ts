/** Log lines and metrics. Nothing here may hold a prompt, an answer, a secret or an upstream's own words. */

/** One line per request. */
export interface RequestLog {
  request_id: string;
  endpoint: string;
  status: number;
  /** How it ended: `completed`, `refused`, `failed`, `client_gone`. */
  end: string;
  duration_ms: number;
  code?: string | undefined;
  /** What the client is not told, in our own words: `key_disabled`, `upstream_html`. */
  reason?: string | undefined;
  key_hint?: string | undefined;
  account?: string | undefined;
  model?: string | undefined;
  channel?: string | undefined;
  /** Declared tools that no chat upstream can have. */
  dropped_tools?: number | undefined;
  /** `web-` calls alone: `found`, `empty`, `none`, `no_query`, `timeout` or `failed`. */
  search?: string | undefined;
  attempts?: { channel: string; outcome: string }[] | undefined;
  upstream_status?: number | undefined;
  first_content_ms?: number | undefined;
  prompt_tokens?: number | undefined;
  completion_tokens?: number | undefined;
  usage_estimated?: boolean | undefined;
  /** The upstream reported impossible counts, which were clamped. */
  usage_clamped?: boolean | undefined;
  /** What was charged, in yuan, as an exact decimal. */
  charge?: string | undefined;
  plan_slot?: string | undefined;
}

export interface Log {
  request(entry: RequestLog): void;
  /** Something that operators or tools act on, by name. Fields are ours: ids, amounts, words of our own. */
  event(name: string, fields: Record<string, unknown>): void;
  /** Something of ours went wrong; `name` and `stack` only, never a message that may quote foreign text. */
  fault(requestId: string, error: unknown): void;
}

/** Each of these has an alarm: a person has to look. */
export const metricNames = [
  'ConservationBroken',
  'LedgerPoisoned',
  'GrantPoisoned',
  'ReservationPoisoned',
] as const;
export type MetricName = (typeof metricNames)[number];

export interface Metrics {
  /** Counts one. */
  count(name: MetricName): void;
}

/** What a sweep found: reservations that are still open after it, and those that it closed. */
export interface SweepResult {
  open: number;
  expired: number;
}

export interface SweepMetrics {
  swept(result: SweepResult): void;
}

/** What the publisher of the configuration counts; each of `badRows` and `failed` has an alarm. */
export interface ConfigMetrics {
  compiled(counts: { badRows: number; warnedRows: number; unpricedModels: number }): void;
  /** Rows with a problem among keys and accounts that were just written. */
  badRows(count: number): void;
  failed(): void;
}
