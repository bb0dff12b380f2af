/**
 * Where a background response stands, as every reader of it finds: a run that has not prolonged its claim is dead, and
 * what it had in hand may no longer be written. Must find the same end for all readers, also when the run comes back.
 */
import type { EventLog } from '../ports/stored/event-log.ts';
import type { RunStore } from '../ports/stored/run-store.ts';
import type { ResponseHead } from '../ports/stored/stored-response.ts';

/**
 * A run writes no event once its claim has passed. Its readers wait this much longer, so that an event which was on its
 * way is there before anybody counts them.
 */
const graceSeconds = 5;

type EndPorts = { events: Pick<EventLog, 'last'>; runs: Pick<RunStore, 'fail'> };

const isOver = ({ status }: ResponseHead): boolean => status !== 'queued' && status !== 'in_progress';

/** The response is found dead from then on (Unix seconds). Undefined: it has ended, or was answered within its request. */
const deadFrom = ({ background }: ResponseHead): number | undefined =>
  background && background.events === undefined ? background.until + graceSeconds : undefined;

/** The head, of a response whose run is dead as failed. Whoever reads a head calls this before anything else. */
export async function foundEnd(
  { events, runs }: EndPorts,
  head: ResponseHead,
  nowSeconds: number,
): Promise<ResponseHead> {
  const dead = deadFrom(head);
  if (isOver(head) || dead === undefined || nowSeconds <= dead) return head;
  const count = head.background?.streamed ? (await eventsKept(events, head)) + 1 : 0;
  return (await runs.fail(head.account, head.id, count)) ?? head;
}

/**
 * The number of its events, the last included. Undefined: it goes on, or was cancelled and its run has not said yet what
 * it had written.
 */
export async function eventsAtEnd(
  events: Pick<EventLog, 'last'>,
  head: ResponseHead,
  nowSeconds: number,
): Promise<number | undefined> {
  const { background } = head;
  if (!background || !isOver(head)) return undefined;
  if (background.events !== undefined) return background.events;
  const waits = background.run !== undefined && nowSeconds <= background.until + graceSeconds;
  return waits ? undefined : (await eventsKept(events, head)) + 1;
}

/**
 * The number of events that are kept; the first is also there when it is not. A run writes a batch once those before it are
 * kept, so the last one tells.
 */
export async function eventsKept(
  events: Pick<EventLog, 'last'>,
  { account, id }: { account: string; id: string },
): Promise<number> {
  const { from, frames } = (await events.last({ account, id })) ?? { from: 0, frames: [] };
  return Math.max(1, from + frames.filter((frame) => frame !== endMark).length);
}

/** Kept after the last event of a run that is about to end, so that readers look at the response at once. No event. */
export const endMark = '';
