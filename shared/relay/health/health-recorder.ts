/**
 * Turns the outcomes of attempts into events of candidates' health and writes them. An answer must never wait for it, except
 * for the claim of a probe.
 */
import type { UpstreamFailure } from '../../upstreams/exchange.ts';
import { fingerprint, hash53 } from '../../wire/ids.ts';
import { keepNewest } from '../../wire/keep-newest.ts';
import type { Candidate } from '../call/call.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import { healthKeySpace } from '../ports/runtime-stores.ts';
import type { FailedCall, HealthEvent, CandidateHealth } from './health-states.ts';

/** Loaded late, because no call needs it while all candidates are healthy. */
const loadStates = () => import('./health-states.ts');

/** More candidates than an item can name; older ones are forgotten. */
const candidatesMax = 1_000;

export type FindHealth = (candidate: Candidate) => CandidateHealth | undefined;

interface FailedAttempt extends Omit<FailedCall, 'succeededMs'> {
  candidate: Candidate;
  failure: UpstreamFailure;
  /** The candidate's health when it was tried. */
  tried: CandidateHealth | undefined;
}

/** The key of what holds for all models of a candidate: the host fails, or the secret is refused. */
const keyOf = ({ hash }: Candidate): number => hash % healthKeySpace;

/** The key of rate limits: vendors limit models one by one, and one must not silence the others. */
const limitKeyOf = ({ hash, model }: Candidate): number => hash53(model, hash) % healthKeySpace;

export const healthKeysOf = (candidate: Candidate): number[] => [keyOf(candidate), limitKeyOf(candidate)];

/** Four characters: an item has room for no more, and a collision lets two accounts count as one. */
const hashOf = (account: string): string => fingerprint(account).slice(-4);

/** One for each function. */
export class HealthRecorder {
  readonly #ports: Pick<ChatPorts, 'health' | 'clock'>;
  readonly #answeredMs = new Map<number, number>();

  constructor(ports: Pick<ChatPorts, 'health' | 'clock'>) {
    this.#ports = ports;
  }

  /** Makes no store call. Returns nothing while all candidates are healthy. */
  async loadHealth(account: string): Promise<FindHealth | undefined> {
    const entries = await this.#ports.health.entries();
    if (entries.size === 0) return undefined;
    const hash = hashOf(account);
    const nowMs = this.#ports.clock.now();
    const { chooseWorstHealth, findHealth } = await loadStates();
    return (candidate) =>
      chooseWorstHealth(healthKeysOf(candidate).map((key) => findHealth(entries.get(key), hash, nowMs)));
  }

  /** False: another call has it. */
  claimProbe(candidate: Candidate): Promise<boolean> {
    return this.#change(healthKeysOf(candidate), { type: 'probe_claimed' });
  }

  /** To be called at the first content: it ends a cooldown that was over, and shows that a running one need not hold. */
  async recordContent(candidate: Candidate, tried: CandidateHealth): Promise<void> {
    if (tried.is !== 'last') await this.#change(healthKeysOf(candidate), { type: 'succeeded' });
  }

  /** To be called at the end of a whole answer. Calls the store only when something is known against the candidate. */
  async recordSuccess(candidate: Candidate): Promise<void> {
    keepNewest(this.#answeredMs, candidatesMax, keyOf(candidate), this.#ports.clock.now());
    const entries = await this.#ports.health.entries();
    const known = healthKeysOf(candidate).filter((one) => entries.has(one));
    if (known.length > 0) await this.#change(known, { type: 'succeeded' });
  }

  /** The upstream refused the caller's request. */
  async recordRefusal(candidate: Candidate, tried: CandidateHealth | undefined): Promise<void> {
    if (tried !== undefined) await this.#change(healthKeysOf(candidate), { type: 'refused_caller' });
  }

  async recordFailure({ candidate, failure, account, tried, ...facts }: FailedAttempt): Promise<void> {
    const succeededMs = this.#answeredMs.get(keyOf(candidate));
    const { eventOfFailure } = await loadStates();
    const event = eventOfFailure(failure, { account: hashOf(account), succeededMs, ...facts });
    const key = event?.type === 'rate_limited' ? limitKeyOf(candidate) : keyOf(candidate);
    if (event) await this.#change([key], event);
    if (tried?.is === 'probe') await this.#change(healthKeysOf(candidate), { type: 'probe_released' });
  }

  async #change(keys: readonly number[], event: HealthEvent): Promise<boolean> {
    const { health, clock } = this.#ports;
    const { nextHealth } = await loadStates();
    const changed = await Promise.all(
      keys.map((key) => health.change(key, (before) => nextHealth(before, event, clock.now()))),
    );
    return changed.includes(true);
  }
}
