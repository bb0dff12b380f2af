import type { ChannelHealth } from '../ports/channel-health.ts';
import type { Clock } from '../ports/clock.ts';
import type { Candidate } from './candidate-order.ts';
import type { UpstreamFailure } from '../../upstreams/upstream-failure.ts';

/** How long a rate limit cools a candidate when the upstream does not say longer. */
const rateLimitMs = 15_000;
/** A refused or unpaid secret needs a person. */
const badSecretMs = 5 * 60_000;
const failuresInARow = 3;
const failingMs = 30_000;
const probeMs = 60_000;
/** What one caller's content can bring about says nothing of the channel. */
const harmless = new Set([400, 403, 413, 422]);

/**
 * What a failure does to its candidate. A rate limit cools it, a refused secret cools it for longer, three failures in
 * a row cool it for a while. A 403 cools nothing: one caller's content could silence a channel for all.
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

  /** `secretChanged`: the secret was read anew after a 401 and is another now: it deserves a try. */
  async failed({ id }: Candidate, failure: UpstreamFailure, secretChanged: boolean): Promise<void> {
    const nowMs = this.#clock.now();
    const { kind, status, retryAfterSeconds = 0 } = failure;
    if (kind === 'status' && harmless.has(status ?? 0)) return;
    // Other environments may hold a good secret: one that could not ask for it must not speak for them.
    if (kind === 'deadline' || kind === 'secret_store' || secretChanged) return;
    if (status === 429) return this.#health.cool(id, nowMs + Math.max(retryAfterSeconds * 1000, rateLimitMs));
    if (status === 401 || status === 402 || kind === 'secret')
      return this.#health.cool(id, nowMs + badSecretMs);
    const failures = await this.#health.countFailure(id);
    if (failures >= failuresInARow || this.#health.of(id)?.coolUntilMs !== undefined)
      await this.#health.cool(id, nowMs + failingMs);
  }

  /** No store call unless something is known against the candidate. A cooling that others began goes on. */
  async succeeded({ id }: Candidate): Promise<void> {
    if (this.#health.of(id)) await this.#health.recover(id, this.#clock.now());
  }
}
