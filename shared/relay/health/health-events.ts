/**
 * What a failed attempt says about its candidate. Decides by the kind of failure alone: what one caller's call can bring
 * about by itself must never make a candidate rest for others. Loaded at the first failure.
 */
import type { UpstreamFailure, UpstreamFailureKind } from '../../upstreams/upstream-failure.ts';
import type { HealthEvent } from './health-states.ts';

/** Statuses and kinds of failure that say nothing about the channel: one caller's call can bring them about. */
const harmless = new Set([400, 403, 413, 422]);
const harmlessKinds = new Set<UpstreamFailureKind>([
  'deadline',
  'first_content_timeout',
  // A failure to reach the secret store is local to this environment.
  'secret_store',
]);

interface FailedCall {
  /** A hash. */
  account: string;
  /** When this environment last saw the candidate answer. */
  succeededMs: number | undefined;
  secretChanged: boolean;
  hasPassedRelays: boolean;
}

/** Undefined: the failure says nothing about the candidate. */
export function eventOf(
  { kind, status, retryAfterSeconds: restSeconds, statedRetrySeconds: statedSeconds }: UpstreamFailure,
  { account, succeededMs, secretChanged, hasPassedRelays }: FailedCall,
): HealthEvent | undefined {
  if (kind === 'status' && harmless.has(status ?? 0)) return undefined;
  if (harmlessKinds.has(kind) || secretChanged) return undefined;
  if (kind === 'loop' && hasPassedRelays) return undefined;
  if (status === 429) return { type: 'rate_limited', restSeconds, statedSeconds };
  if (status === 401 || status === 402 || kind === 'secret') return { type: 'credentials_refused' };
  return { type: 'failed', account, succeededMs };
}
