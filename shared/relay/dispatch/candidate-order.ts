/**
 * Decides the order in which a call's candidates are tried. Health orders them and never leaves one out, but those whose
 * upstream said when it may be asked again. Reads health; must never write it.
 */
import type { UpstreamFailure } from '../../upstreams/upstream-failure.ts';
import type { Candidate } from '../call/candidate.ts';
import { ranked, type Score } from './conversation-rank.ts';
import type { StandingOf } from '../health/health-recorder.ts';
import type { Standing } from '../health/standing.ts';

/** Of a call's attempts, a channel has at most this many while another channel is left. */
const attemptsOfChannel = 2;

export interface OrderPorts {
  /** Undefined: nothing is known against any candidate. */
  standingOf: StandingOf | undefined;
  /** The higher, the earlier within a priority. */
  score: Score;
  /** Whether a candidate ranks first, because the conversation's state comes from it. Absent: none does. */
  isFirst?: ((candidate: Candidate) => boolean) | undefined;
}

/** A candidate as one call finds it. */
export interface Rank {
  readonly candidate: Candidate;
  /**
   * Undefined: nothing is known against it. `probe`: the caller claims the probe first, and defers the candidate if
   * another call has it. `resting`: the caller waits for a place.
   */
  readonly standing: Standing | undefined;
}

/**
 * A call's candidates, each once, by priority, and by score within one; the origin of state comes first. Those in
 * cooldown come last, the one whose cooldown ends first before the others. Looks at no more candidates than are taken.
 */
export class CandidateOrder {
  readonly #source: Iterator<Candidate, void, undefined>;
  readonly #standingOf: StandingOf | undefined;
  readonly #failedOfChannel = new Map<string, number>();
  /** Taken from the source, and to be tried next. */
  #ahead: Rank[] = [];
  /** Candidates of channels that had their share of attempts. */
  readonly #spent: Rank[] = [];
  readonly #resting: { candidate: Candidate; standing: Standing }[] = [];
  #blocked: Standing | undefined;

  /** @param candidates by priority */
  constructor(candidates: readonly Candidate[], { standingOf, score, isFirst }: OrderPorts) {
    this.#standingOf = standingOf;
    this.#source = sourceOf(candidates, score, isFirst);
  }

  take(): Rank | undefined {
    const rank = this.#serving();
    if (rank?.standing?.is !== 'probe') return rank ?? this.#spent.shift() ?? this.#leastBad();
    // While no other candidate can serve, every call tries this one, so there is nothing to claim.
    const other = this.#serving();
    if (other) this.#ahead.unshift(other);
    else this.#rest(rank.candidate, rank.standing);
    return other ? rank : (this.#spent.shift() ?? this.#leastBad());
  }

  /** Another call probes the candidate, so it comes after those that can serve. */
  defer({ candidate, standing }: Rank): void {
    if (standing) this.#rest(candidate, standing);
  }

  /** A channel that fails for all its secrets, or twice, makes room for others. */
  failed({ channel }: Candidate, failure: UpstreamFailure): void {
    const ofSecret = failure.kind === 'secret' || [401, 402, 403, 429].includes(failure.status ?? 0);
    const failed = this.#failedOfChannel.get(channel.id) ?? 0;
    this.#failedOfChannel.set(channel.id, ofSecret ? failed + 1 : attemptsOfChannel);
  }

  get hasMore(): boolean {
    const rank = this.take();
    if (rank) this.#ahead.unshift(rank);
    return rank !== undefined;
  }

  /** Of the candidates that are not asked because their upstreams said so, the one that may be asked first. */
  get blocked(): Standing | undefined {
    return this.#blocked;
  }

  /** The next candidate that is not in cooldown and whose channel has not had its share. */
  #serving(): Rank | undefined {
    for (;;) {
      const rank = this.#ahead.shift() ?? this.#next();
      if (!rank) return undefined;
      const { candidate, standing } = rank;
      if (standing && standing.is !== 'probe') this.#rest(candidate, standing);
      else if (this.#isSpent(candidate)) this.#spent.push(rank);
      else return rank;
    }
  }

  #next(): Rank | undefined {
    const { value: candidate, done } = this.#source.next();
    return done || !candidate ? undefined : { candidate, standing: this.#standingOf?.(candidate) };
  }

  #rest(candidate: Candidate, standing: Standing): void {
    if (standing.is !== 'blocked') this.#resting.push({ candidate, standing });
    else if (!this.#blocked || standing.untilMs < this.#blocked.untilMs) this.#blocked = standing;
  }

  #leastBad(): Rank | undefined {
    const ofOthers = this.#resting.filter(({ candidate }) => !this.#isSpent(candidate));
    const left = ofOthers.length > 0 ? ofOthers : this.#resting;
    const [best] = left.toSorted((a, b) => a.standing.untilMs - b.standing.untilMs);
    if (!best) return undefined;
    this.#resting.splice(this.#resting.indexOf(best), 1);
    const { candidate, standing } = best;
    return { candidate, standing: standing.is === 'probe' ? { ...standing, is: 'resting' } : standing };
  }

  #isSpent({ channel }: Candidate): boolean {
    return (this.#failedOfChannel.get(channel.id) ?? 0) >= attemptsOfChannel;
  }
}

function* sourceOf(
  candidates: readonly Candidate[],
  score: Score,
  isFirst: OrderPorts['isFirst'],
): Generator<Candidate, void, undefined> {
  const first = isFirst && candidates.find(isFirst);
  if (first) yield first;
  for (const candidate of ranked(candidates, score)) if (candidate !== first) yield candidate;
}
