/** Log lines and metrics. They must never hold a prompt, an answer, a secret or text of an upstream. */
import type { Attribution } from '../../billing/ledger-row.ts';
import type { PartCounts } from '../../wire/chat-response.ts';

/** The fields of a request's log line; one line per request. Of parts of the input only what there is. */
export interface RequestLog extends PartCounts, Attribution {
  request_id: string;
  endpoint: string;
  status: number;
  /** How the request ended: `completed`, `refused`, `failed`, `client_gone`; `counted`: it asked for the tokens of an input alone. */
  end: string;
  duration_ms: number;
  code?: string | undefined;
  /** Not shown to the client, such as `key_disabled` or `upstream_html`. Quotes no foreign text. */
  reason?: string | undefined;
  key_hint?: string | undefined;
  account?: string | undefined;
  /** The model that answered, or was tried last; of a refused request, as it was asked for. */
  model?: string | undefined;
  alias?: string | undefined;
  channel?: string | undefined;
  /** How many, because no upstream of another form supports them. */
  dropped_tools?: number | undefined;
  /** The client's fields that the upstream was not sent: 20 plain names of 64 characters at most, whatever a client sends. */
  dropped?: string[] | undefined;
  /** How many such fields there were. */
  dropped_count?: number | undefined;
  /** How often the upstream changed the input, such as by leaving out reasoning, by its reason. */
  input_transformations?: Readonly<Record<string, number>> | undefined;
  /** `web-` calls only: `found`, `empty`, `none`, `no_query`, `timeout` or `failed`. */
  search?: string | undefined;
  /** Only a call that went wrong lists its candidates. */
  attempts?: readonly TriedLine[] | undefined;
  /** How many more than one were asked. */
  retries?: number | undefined;
  upstream_status?: number | undefined;
  first_content_ms?: number | undefined;
  prompt_tokens?: number | undefined;
  completion_tokens?: number | undefined;
  usage_estimated?: boolean | undefined;
  /** The estimated counts, and why: see `UsageFault`. */
  usage_flag?: string | undefined;
  /** The upstream's counts were expected and not plausible, so its channel needs an operator. */
  usage_implausible?: boolean | undefined;
  /** The reported counts, if any of them was not used. */
  reported_input?: number | undefined;
  reported_output?: number | undefined;
  service_tier?: string | undefined;
  /** The reported tier, if it was not charged because the client had asked for a cheaper one. */
  reported_tier?: string | undefined;
  /** The charge in yuan, as an exact decimal. */
  charge?: string | undefined;
  plan_slot?: string | undefined;
  /** The cause that lowered the limit on output tokens to `max_tokens`. */
  limited_by?: 'balance' | 'budget' | undefined;
  max_tokens?: number | undefined;
  /** An answer ended at a limit that was lowered. */
  limit_reached?: boolean | undefined;
  /** The amounts or the limit that decided a refusal. */
  facts?: Readonly<Record<string, string | number | undefined>> | undefined;
  /** The error names a field of the request. */
  param?: boolean | undefined;
  /** Seconds, as the client got it. */
  retry_after?: number | undefined;
  /** Only calls that went wrong have the fields from here on: at most four candidates that were not tried, and the number of others. */
  passed_over?: readonly PassedOverLine[] | undefined;
  more_candidates?: number | undefined;
  reserved?: ({ yuan: string } & Pick<RequestLog, 'plan_slot' | 'max_tokens' | 'limited_by'>) | undefined;
  /** The fields of the request that the relay knows. */
  sent?: readonly string[] | undefined;
  /** When the client was sent the first text, and how much in all (UTF-16 code units). */
  first_text_ms?: number | undefined;
  length?: number | undefined;
}

/** A call whose first content took longer is slow, whatever its channel. */
export const slowMs = 5_000;

/** A candidate that was tried. Times in milliseconds, `at` and `broke_at` from the request's arrival. */
export interface TriedLine {
  channel: string;
  /** `answered`, `under_way`, `refused`, or the reason of its failure. */
  outcome: string;
  /** The number of its secret in the channel, from 1. A single secret has none. */
  secret?: number | undefined;
  status?: number | undefined;
  /** A word that vendors publish. */
  code?: string | undefined;
  at?: number | undefined;
  /** To its failure, or to its first content. */
  ms?: number | undefined;
  broke_at?: number | undefined;
  /** Its cooldown or probe when it was tried. */
  stood?: string | undefined;
  /** In how many forms it was asked. */
  forms?: number | undefined;
}

export interface PassedOverLine {
  channel: string;
  secret: number | undefined;
  why: string;
  /** The kind of its cooldown, and the seconds that are left of it. */
  kind: string | undefined;
  seconds: number | undefined;
}

export interface Log {
  request(entry: RequestLog): void;
  /** A named event that operators or tools act on. Fields hold ids, amounts and fixed words, never foreign text. */
  event(name: string, fields: Record<string, unknown>): void;
  /** An unexpected error by name, code and frames, never by its message, which may quote foreign text; `fields` as an event's. */
  fault(requestId: string, error: unknown, fields?: Record<string, string>): void;
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
  /** Adds 1. */
  count(name: MetricName): void;
}

/** Reservations still open after a sweep, and those that it closed. */
export interface SweepResult {
  open: number;
  expired: number;
}

/** The metrics of the configuration's publisher. `badRows` and `failed` have an alarm each. */
export interface ConfigMetrics {
  compiled(counts: { badRows: number; warnedRows: number; unpricedModels: number }): void;
  /** Counts newly written rows of keys and accounts that have a problem. */
  badRows(count: number): void;
  failed(): void;
}
