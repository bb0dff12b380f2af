/** Updates a candidate's health by the outcome of an attempt: cooldowns, probes, consecutive failures. */
import type { ChannelHealth } from '../ports/stores/channel-health.ts';
import type { Clock } from '../ports/clock.ts';
import type { Candidate } from '../call/candidate.ts';
import type { UpstreamFailure, UpstreamFailureKind } from '../../upstreams/upstream-failure.ts';

/** Cooldown after a rate limit, unless the upstream's Retry-After is longer. */
const rateLimitMs = 15_000;
/** Cooldown of a refused or unpaid secret; long, because an operator has to act. */
const badSecretMs = 5 * 60_000;
const failuresInARow = 3;
const failingMs = 30_000;
const probeMs = 60_000;
/** Statuses that a caller's content can cause. They do not change the channel's health. */
const harmless = new Set([400, 403, 413, 422]);
const harmlessKinds = new Set<UpstreamFailureKind>(['deadline', 'secret_store', 'first_content_timeout']);

/**
 * A rate limit, a refused secret or three consecutive failures start a cooldown. A 403 does not: one caller's
 * content could otherwise disable a channel for all.
 */
export class HealthRecorder {
  readonly #health: ChannelHealth;
  readonly #clock: Clock;

  constructor(health: ChannelHealth, clock: Clock) {
    this.#health = health;
    this.#clock = clock;
  }

  claimProbe({ id }: Candidate): Promise<boolean> {
    const nowMs = this.#clock.now();
    return this.#health.claimProbe(id, nowMs, nowMs + probeMs);
  }

  /** `secretChanged`: a second read of the refused secret returned a new value, so no cooldown is needed. */
  async failed({ id }: Candidate, failure: UpstreamFailure, secretChanged: boolean): Promise<void> {
    const nowMs = this.#clock.now();
    const { kind, status, retryAfterSeconds = 0 } = failure;
    if (kind === 'status' && harmless.has(status ?? 0)) return;
    // A failure to reach the secret store is local to this environment; do not cool the channel for all.
    if (harmlessKinds.has(kind) || secretChanged) return;
    if (status === 429) return this.#health.cool(id, nowMs + Math.max(retryAfterSeconds * 1000, rateLimitMs));
    if (status === 401 || status === 402 || kind === 'secret')
      return this.#health.cool(id, nowMs + badSecretMs);
    const failures = await this.#health.countFailure(id);
    if (failures >= failuresInARow || this.#health.of(id)?.coolUntilMs !== undefined)
      await this.#health.cool(id, nowMs + failingMs);
  }

  /** Calls the store only when the candidate has recorded failures. Does not end a running cooldown. */
  async succeeded({ id }: Candidate): Promise<void> {
    if (this.#health.of(id)) await this.#health.recover(id, this.#clock.now());
  }
}
