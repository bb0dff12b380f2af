/** How many stories there may be, so that no caller fills the log. */
import type { EndedCall } from './ended-call.ts';
import { storyCauses } from './story-causes.ts';

/**
 * Stories of a minute and environment. The request's line of a caller without an account has all that is known; what a caller
 * alone brings about (refusals, also by an upstream, and leaving) repeats, and of slow calls a few say what is slow. What
 * failed at an upstream always has its story.
 */
const storiesMax = { stranger: 5, caller: 60, slow: 20, other: Infinity } as const;
type StoryClass = keyof typeof storiesMax;

/** One for each environment. */
export class StoryLimits {
  #minute = -1;
  #stories = new Map<StoryClass, number>();

  /** Counts a story. */
  allow(ended: EndedCall, nowMs: number): boolean {
    const minute = Math.floor(nowMs / 60_000);
    if (minute !== this.#minute) this.#stories = new Map();
    this.#minute = minute;
    const kind = classOf(ended);
    const count = (this.#stories.get(kind) ?? 0) + 1;
    this.#stories.set(kind, count);
    return count <= storiesMax[kind];
  }
}

function classOf(ended: EndedCall): StoryClass {
  if (ended.account === undefined) return 'stranger';
  const why = storyCauses(ended).join();
  if (!ended.dispatched || why === 'refused' || why === 'client_gone') return 'caller';
  return why === 'slow' ? 'slow' : 'other';
}
