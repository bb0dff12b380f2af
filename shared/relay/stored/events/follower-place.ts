/**
 * Bounds how many follow one response, since each holds an invocation for as long as the response runs. The newest stay: a
 * client that comes back ends what is left of itself. Must never end a follower because the store does not answer.
 */
import type { Clock } from '../../ports/clock.ts';
import type { FollowerCount } from '../../ports/stored/follower-count.ts';

/** Of one response. A few devices, each of which may have left some connections behind. */
export const followersMax = 16;
const lookEveryMs = 15_000;
/** Longer than any follower lasts. */
const countedSeconds = 60 * 60;

interface PlacePorts {
  clock: Clock;
  stored: { followers: FollowerCount };
}

type Of = Parameters<FollowerCount['last']>[0];

/** The place of one more. */
export const takenPlace = ({ clock, stored }: PlacePorts, { account, id }: Of): Promise<number> =>
  stored.followers.add({ account, id }, Math.floor(clock.now() / 1000) + countedSeconds);

/** Looks until the signal aborts. Resolves when as many have come since as may follow: true. Never rejects. */
export async function placeIsLost(
  { clock, stored }: PlacePorts,
  { of, place }: { of: Of; place: number },
  signal: AbortSignal,
): Promise<boolean> {
  for (;;) {
    await clock.sleep(lookEveryMs, signal);
    if (signal.aborted) return false;
    const last = await stored.followers.last(of).catch(() => place);
    if (last - place >= followersMax) return true;
  }
}
