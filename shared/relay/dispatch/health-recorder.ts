/**
 * What one environment knows and writes of candidates' health: turns outcomes of attempts into events. Writes no more
 * than there is to say; must never be awaited by an answer, but for the claim of a probe.
 */
import type { UpstreamFailure, UpstreamFailureKind } from '../../upstreams/upstream-failure.ts';
import { fingerprint } from '../../wire/fingerprint.ts';
import type { Candidate } from '../call/candidate.ts';
import type { ChatPorts } from '../call/chat-ports.ts';
import { healthKeySpace } from '../ports/stores/channel-health.ts';
import type { HealthEvent, Standing } from './health-states.ts';
import type { TrialPlaces } from './trial-places.ts';

/** Statuses and kinds of failure that say nothing about the channel: one caller's call can bring them about. */
const harmless = new Set([400, 403, 413, 422]);
const harmlessKinds = new Set<UpstreamFailureKind>([
  'deadline',
  'first_content_timeout',
  // A failure to reach the secret store is local to this environment.
  'secret_store',
]);
/** Failures counted and forgotten, as with a channel that fails half of its calls, are written this often. */
const countsMax = 6;
const countsWithinMs = 10_000;
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

interface Written {
  /** Never rejects. */
  pending: Promise<void>;
  /** How often the store failed. */
  faults: number;
  counts: number;
  countsSinceMs: number;
}

const keyOf = ({ hash }: Candidate): number => hash % healthKeySpace;

/** Four characters: an item has room for no more, and a collision lets two accounts count as one. */
const hashOf = (account: string): string => fingerprint(account).slice(-4);

/** One for each function. */
export class HealthRecorder {
  readonly #ports: Pick<ChatPorts, 'health' | 'clock'>;
  readonly #answeredMs = new Map<number, number>();
  readonly #written = new Map<number, Written>();
  #places: TrialPlaces | undefined;

  constructor(ports: Pick<ChatPorts, 'health' | 'clock'>) {
    this.#ports = ports;
  }

  /** Undefined: nothing is known against any candidate. Makes no store call. */
  async standings(account: string): Promise<StandingOf | undefined> {
    const entries = await this.#ports.health.entries();
    if (entries.size === 0) return undefined;
    const { standing } = await import('./health-states.ts');
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
  async place(candidate: Candidate, signal: AbortSignal): Promise<(() => void) | undefined> {
    const { TrialPlaces: Places } = await import('./trial-places.ts');
    this.#places ??= new Places(this.#ports.clock);
    return this.#places.take(keyOf(candidate), signal);
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
    const event = eventOf(failure, secretChanged);
    if (event === 'failed') {
      const succeededMs = this.#answeredMs.get(keyOf(candidate));
      await this.#change(candidate, { type: 'failed', account: hashOf(account), succeededMs });
    } else if (event) await this.#change(candidate, event);
    else if (tried?.is === 'probe') await this.#change(candidate, { type: 'probe_released' });
  }

  /**
   * One change of a candidate at a time: the next one mostly finds that it has nothing to write. When the store fails,
   * those that wait are dropped.
   */
  async #change(candidate: Candidate, event: HealthEvent): Promise<boolean> {
    const key = keyOf(candidate);
    if (this.#written.size >= rememberedMax) this.#written.clear();
    const written = this.#written.get(key) ?? newWritten();
    this.#written.set(key, written);
    const { faults } = written;
    const change = written.pending.then(() => faults === written.faults && this.#write(key, event, written));
    written.pending = change.then(
      () => {},
      () => {
        written.faults += 1;
      },
    );
    return change;
  }

  async #write(key: number, event: HealthEvent, written: Written): Promise<boolean> {
    const { next } = await import('./health-states.ts');
    const { health, clock } = this.#ports;
    return health.change(key, (before) => {
      const after = next(before, event, clock.now());
      if (after === before) return before;
      const counts = (after ?? before)?.kind === 'failures';
      return counts && !mayCount(written, clock.now()) ? before : after;
    });
  }
}

const newWritten = (): Written => ({
  pending: Promise.resolve(),
  faults: 0,
  counts: 0,
  countsSinceMs: -Infinity,
});

/** Counts the write. */
function mayCount(written: Written, nowMs: number): boolean {
  if (nowMs - written.countsSinceMs >= countsWithinMs) {
    written.counts = 0;
    written.countsSinceMs = nowMs;
  }
  written.counts += 1;
  return written.counts <= countsMax;
}

/** Undefined: the failure says nothing about the candidate. */
function eventOf(
  { kind, status, retryAfterSeconds: restSeconds, statedRetrySeconds: statedSeconds }: UpstreamFailure,
  secretChanged: boolean,
): HealthEvent | 'failed' | undefined {
  if (kind === 'status' && harmless.has(status ?? 0)) return undefined;
  if (harmlessKinds.has(kind) || secretChanged) return undefined;
  if (status === 429) return { type: 'rate_limited', restSeconds, statedSeconds };
  if (status === 401 || status === 402 || kind === 'secret') return { type: 'credentials_refused' };
  return 'failed';
}
