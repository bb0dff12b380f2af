/** Decides the order in which a call's candidates are tried. Reads health; must never write it. */
import type { Candidate } from '../call/candidate.ts';
import type { ChannelHealth } from '../ports/stores/channel-health.ts';
import { ranked, type Score } from './conversation-rank.ts';

export interface OrderPorts {
  health: Pick<ChannelHealth, 'of'>;
  nowMs: number;
  /** The higher, the earlier within a priority. */
  score: Score;
  /** Whether a candidate ranks first, because the conversation's state comes from it. Absent: none does. */
  isFirst?: ((candidate: Candidate) => boolean) | undefined;
}

/** A candidate as one call finds it. */
export interface Rank {
  readonly candidate: Candidate;
  /** Its cooldown is over, but no call has succeeded since. The caller must claim the probe first. */
  readonly probe: boolean;
}

export interface Route {
  /** In the order in which to try them; each channel at most once. */
  ranks: Rank[];
  /** When the first cooldown ends, in epoch milliseconds. Undefined: no cooldown runs. */
  soonestMs: number | undefined;
}

/**
 * Orders candidates by priority, and by score within a priority; the origin of state comes first. Omits those in
 * cooldown, and those that need a probe while another secret of their channel needs none.
 * @param candidates by priority
 */
export function orderCandidates(candidates: readonly Candidate[], ports: OrderPorts): Route {
  const { health, nowMs, score, isFirst } = ports;
  const known = [...ranked(candidates, score)].map((candidate) => {
    const { coolUntilMs, probeUntilMs = 0 } = health.of(candidate.id) ?? {};
    const untilMs = Math.max(coolUntilMs ?? 0, probeUntilMs);
    return { untilMs, rank: { candidate, probe: coolUntilMs !== undefined } };
  });
  const free = known.filter(({ untilMs }) => untilMs <= nowMs).map(({ rank }) => rank);
  const fresh = new Set(free.filter(({ probe }) => !probe).map(({ candidate }) => candidate.channel.id));
  const usable = free.filter(({ candidate, probe }) => !probe || !fresh.has(candidate.channel.id));
  const first = isFirst && usable.find(({ candidate }) => isFirst(candidate));
  const cooldownEndsMs = known.map(({ untilMs }) => untilMs).filter((untilMs) => untilMs > nowMs);
  return {
    ranks: oncePerChannel(first ? [first, ...usable] : usable),
    soonestMs: cooldownEndsMs.length > 0 ? Math.min(...cooldownEndsMs) : undefined,
  };
}

/** For each model: a channel that failed for one may answer for another. */
function oncePerChannel(ranks: Rank[]): Rank[] {
  const seen = new Set<string>();
  return ranks.filter(({ candidate: { channel, model } }) => {
    const served = `${model} ${channel.id}`;
    return !seen.has(served) && seen.add(served);
  });
}

/** Takes the candidate to try next. The last attempt is for a model of which none was tried yet, if one is left. */
export function takeNext(
  ranks: Rank[],
  tried: readonly { candidate: Pick<Candidate, 'model'> }[],
  isLast: boolean,
): Rank | undefined {
  const isNew = (rank: Rank): boolean =>
    !tried.some(({ candidate }) => candidate.model === rank.candidate.model);
  const other = isLast ? ranks.findIndex(isNew) : -1;
  return other > 0 ? ranks.splice(other, 1)[0] : ranks.shift();
}

/** Removes the candidates of a model. */
export function dropModel(ranks: Rank[], model: string): void {
  ranks.splice(0, ranks.length, ...ranks.filter(({ candidate }) => candidate.model !== model));
}
