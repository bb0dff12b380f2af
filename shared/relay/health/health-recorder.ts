/**
 * What one environment knows and writes of candidates' health: turns outcomes of attempts into events. Writes no more
 * than there is to say; must never be awaited by an answer, but for the claim of a probe.
 */
import type { UpstreamFailure } from '../../upstreams/upstream-failure.ts';
import { fingerprint } from '../../wire/fingerprint.ts';
import type { Candidate } from '../call/candidate.ts';
import type { ChatPorts } from '../call/chat-ports.ts';
import { healthKeySpace } from '../ports/stores/channel-health.ts';
import type { HealthChanges } from './health-changes.ts';
import type { HealthEvent } from './health-states.ts';
import type { Standing } from './standing.ts';
import type { TrialPlaces } from './trial-places.ts';

/** More candidates than an item can name; older ones are forgotten. */
const rememberedMax = 1_000;

/** Undefined: nothing is known against the candidate. */
export type StandingOf = (candidate: Candidate) => Standing | undefined;

export interface Failing {
  candidate: Candidate;
  failure: UpstreamFailure;
  /** A second read of the refused secret returned a new value, so there is no reason to rest. */
  secretChanged: boolean;
  account: string;
  /** Where the candidate stood when it was tried. */
  tried: Standing | undefined;
}

const keyOf = ({ hash }: Candidate): number => hash % healthKeySpace;

/** Four characters: an item has room for no more, and a collision lets two accounts count as one. */
const hashOf = (account: string): string => fingerprint(account).slice(-4);

/** One for each function. */
export class HealthRecorder {
  readonly #ports: Pick<ChatPorts, 'health' | 'clock'>;
  readonly #answeredMs = new Map<number, number>();
  #changes: HealthChanges | undefined;
  #places: TrialPlaces | undefined;

  constructor(ports: Pick<ChatPorts, 'health' | 'clock'>) {
    this.#ports = ports;
  }

  /** Undefined: nothing is known against any candidate. Makes no store call. */
  async standings(account: string): Promise<StandingOf | undefined> {
    const entries = await this.#ports.health.entries();
    if (entries.size === 0) return undefined;
    const { standing } = await import('./standing.ts');
    const hash = hashOf(account);
    const nowMs = this.#ports.clock.now();
    return (candidate) => {
      const entry = entries.get(keyOf(candidate));
      return entry && standing(entry, hash, nowMs);
    };
  }

  /** False: another call has it. */
  claimProbe(candidate: Candidate): Promise<boolean> {
    return this.#change(candidate, { type: 'probe_claimed' });
  }

  /**
   * Waits for a place in which a resting candidate may be tried. Resolves to what releases it, which may be called
   * again; undefined: the signal aborted before.
   */
  async place(candidate: Candidate, account: string, signal: AbortSignal): Promise<(() => void) | undefined> {
    const { TrialPlaces: Places } = await import('./trial-places.ts');
    this.#places ??= new Places(this.#ports.clock);
    return this.#places.take(keyOf(candidate), account, signal);
  }

  /** To be called at the first content: it ends a rest that was over, and shows that a running one need not hold. */
  async answered(candidate: Candidate, tried: Standing | undefined): Promise<void> {
    if (tried === undefined) return;
    this.#places?.open(keyOf(candidate));
    if (tried.is !== 'last') await this.#change(candidate, { type: 'succeeded' });
  }

  /** To be called at the end of a whole answer. Calls the store only when something is known against the candidate. */
  async succeeded(candidate: Candidate): Promise<void> {
    const key = keyOf(candidate);
    if (this.#answeredMs.size >= rememberedMax) this.#answeredMs.clear();
    this.#answeredMs.set(key, this.#ports.clock.now());
    const entries = await this.#ports.health.entries();
    if (entries.has(key)) await this.#change(candidate, { type: 'succeeded' });
  }

  /** The upstream refused the caller's request. */
  async refused(candidate: Candidate, tried: Standing | undefined): Promise<void> {
    if (tried !== undefined) await this.#change(candidate, { type: 'refused_caller' });
  }

  async failed({ candidate, failure, secretChanged, account, tried }: Failing): Promise<void> {
    const { eventOf } = await import('./health-events.ts');
    const succeededMs = this.#answeredMs.get(keyOf(candidate));
    const event = eventOf(failure, { account: hashOf(account), succeededMs, secretChanged });
    if (event) await this.#change(candidate, event);
    else if (tried?.is === 'probe') await this.#change(candidate, { type: 'probe_released' });
  }

  async #change(candidate: Candidate, event: HealthEvent): Promise<boolean> {
    const { HealthChanges: Changes } = await import('./health-changes.ts');
    this.#changes ??= new Changes(this.#ports);
    return this.#changes.apply(keyOf(candidate), event);
  }
}
