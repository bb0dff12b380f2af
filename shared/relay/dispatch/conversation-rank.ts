/** Ranks candidates for a conversation. Must not read a store or health. */
import type { Candidate } from '../call/candidate.ts';

/** The higher, the earlier within a priority. Below zero only for candidates without a share. */
export type Score = (candidate: Candidate) => number;

/**
 * The rank of a candidate by a draw from (0, 1): the highest rank falls to each candidate as often as its share says.
 * Candidates without a share come after all others.
 */
export const shareOfDraw = (share: number, draw: number): number =>
  share > 0 ? -share / Math.log(draw) : draw - 1;

/**
 * The candidates by priority, and by score within one. Sorts no more than is read: most calls need the first one.
 * @param candidates by priority; those of one priority of one model stand together
 */
export function* ranked(
  candidates: readonly Candidate[],
  score: Score,
): Generator<Candidate, void, undefined> {
  for (let start = 0; start < candidates.length;) {
    const end = tierEnd(candidates, start);
    const left = candidates.slice(start, end);
    const scores = left.map(score);
    while (left.length > 0) {
      let best = 0;
      for (let i = 1; i < scores.length; i += 1) if ((scores[i] ?? 0) > (scores[best] ?? 0)) best = i;
      scores.splice(best, 1);
      yield* left.splice(best, 1);
    }
    start = end;
  }
}

/** Where the candidates of a priority end. */
function tierEnd(candidates: readonly Candidate[], start: number): number {
  const first = candidates[start];
  const end = candidates.findIndex(
    ({ channel, model }, i) =>
      i > start && (channel.priority !== first?.channel.priority || model !== first.model),
  );
  return end < 0 ? candidates.length : end;
}
