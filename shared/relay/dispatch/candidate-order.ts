/**
 * Decides the order in which a call's candidates are tried. Health orders them and never leaves one out, but those whose
 * upstream said when it may be asked again. Reads health; must never write it.
 */
import type { UpstreamFailure } from '../../upstreams/upstream-failure.ts';
import type { Candidate } from '../call/candidate.ts';
import type { PassedOver } from '../call/dispatch-report.ts';
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
  /** All of the call. */
  readonly candidates: readonly Candidate[];
  readonly #source: Iterator<Candidate, void, undefined>;
  readonly #standingOf: StandingOf | undefined;
  readonly #failedOfChannel = new Map<string, number>();
  /** Taken from the source, and to be tried next. */
  #ahead: Rank[] = [];
  /** Candidates of channels that had their share of attempts. */
  #spent: Rank[] = [];
  /** Models whose candidates come after those of others. */
  #last: ReadonlySet<string> = new Set();
  readonly #leftOut = new Set<string>();
  #resting: { candidate: Candidate; standing: Standing }[] = [];
  #blocked: { candidate: Candidate; standing: Standing }[] = [];

  /** @param candidates by priority */
  constructor(candidates: readonly Candidate[], { standingOf, score, isFirst }: OrderPorts) {
    this.candidates = candidates;
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
  failed(candidate: Candidate, failure: UpstreamFailure): void {
    const ofSecret = failure.kind === 'secret' || [401, 402, 403, 429].includes(failure.status ?? 0);
    const served = servedBy(candidate);
    const failed = this.#failedOfChannel.get(served) ?? 0;
    this.#failedOfChannel.set(served, ofSecret ? failed + 1 : attemptsOfChannel);
  }

  /** Why the candidate was not taken, as things stood when the call began. */
  passedOver(candidate: Candidate): PassedOver {
    return { candidate, ...(this.#standingOf?.(candidate) ?? { is: 'not_needed' }) };
  }

  /** From now on these models come after others, if any is left. */
  putLast(models: Iterable<string>): void {
    this.#last = new Set(models);
  }

  /** No candidate of the model is taken any more. */
  leaveOut(model: string): void {
    this.#leftOut.add(model);
    const isOther = ({ candidate }: { candidate: Candidate }): boolean => candidate.model !== model;
    this.#ahead = this.#ahead.filter(isOther);
    this.#spent = this.#spent.filter(isOther);
    this.#resting = this.#resting.filter(isOther);
    this.#blocked = this.#blocked.filter(isOther);
  }

  get hasMore(): boolean {
    const rank = this.take();
    if (rank) this.#ahead.unshift(rank);
    return rank !== undefined;
  }

  /** Of the candidates that are not asked because their upstreams said so, the one that may be asked first. */
  get blocked(): Standing | undefined {
    const [first] = this.#blocked.toSorted((a, b) => a.standing.untilMs - b.standing.untilMs);
    return first?.standing;
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
    for (;;) {
      const { value: candidate, done } = this.#source.next();
      if (done || !candidate) return undefined;
      if (!this.#leftOut.has(candidate.model)) return { candidate, standing: this.#standingOf?.(candidate) };
    }
  }

  #rest(candidate: Candidate, standing: Standing): void {
    const kept = standing.is === 'blocked' ? this.#blocked : this.#resting;
    kept.push({ candidate, standing });
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

  #isSpent(candidate: Candidate): boolean {
    const failed = this.#failedOfChannel.get(servedBy(candidate)) ?? 0;
    return failed >= attemptsOfChannel || this.#last.has(candidate.model);
  }
}

/** A channel that failed for one model of an alias may answer for another. */
const servedBy = ({ channel, model }: Candidate): string => `${model} ${channel.id}`;

function* sourceOf(
  candidates: readonly Candidate[],
  score: Score,
  isFirst: OrderPorts['isFirst'],
): Generator<Candidate, void, undefined> {
  const first = isFirst && candidates.find(isFirst);
  if (first) yield first;
  for (const candidate of ranked(candidates, score)) if (candidate !== first) yield candidate;
}
