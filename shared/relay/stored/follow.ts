/**
 * Streams the events of a background response, from one on, until its end: to the caller who created it and to whoever
 * comes back. All readers get the same events, each once, however often they were cut off. Must never show what is another
 * account's, nor end as if an answer were whole that is not.
 */
import {
  renderCreatedFrame,
  renderLastFrame,
  showResponse,
} from '../../endpoints/responses/stored-response.ts';
import { idleMs, streamedAnswer } from '../../endpoints/endpoint.ts';
import { renderCommentFrame } from '../../stream/sse.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { Delivery, ResponseQueue } from '../answer/delivery.ts';
import type { ChatCall } from '../call/call.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { RelayRequest, RelayResponse } from '../http/http.ts';
import { Refusal } from '../http/refusal.ts';
import { Backoff } from '../retry.ts';
import type { ResponseHead, StoredPorts, StoredResponse } from '../ports/stored.ts';
import { StoreBusy, StoreUnavailable } from '../ports/store-errors.ts';
import {
  endMark,
  countEventsAtEnd,
  failIfRunDied,
  refuseUnknownResponse,
  StoredReader,
  type AskedStored,
} from './reads.ts';

/** The time between two looks at the store: what a minute of them costs is in docs/cost.md. */
const pollMs = 500;
/** How long a store that throttles is asked again: before anything is sent, and while events are. */
const firstMsMax = 2_000;
const refusedMsMax = 30_000;
/** Lambda kills at its time-out without notice: the connection is broken before, and the client comes back. */
const hostReserveMs = 5_000;
/** How often the head is read while events come or are awaited. It also says that the response was cancelled or deleted. */
const headMs = 2_000;
/** More may be there at once when a read returned as much (UTF-16 code units). */
const muchLength = 256 * 1024;
/** How much text may wait for a slow client (UTF-16 code units). */
const waitingLengthMax = 1024 * 1024;

type FollowPorts = Pick<ChatPorts, 'clock' | 'random' | 'stored' | 'log'>;

/**
 * A POST gets all events, a GET those after its `starting_after`. Throws a Refusal, an InvalidRequest or
 * StoreUnavailable before anything is sent.
 */
export async function followResponse(
  ports: FollowPorts,
  { key, snapshot }: Pick<ChatCall, 'key' | 'snapshot'>,
  { id, request }: AskedStored,
): Promise<RelayResponse> {
  const reader = new StoredReader(ports, key.account, request);
  const after = request.method === 'POST' ? -1 : readStartingAfter(request.query.get('starting_after'));
  const { eventMinutes } = snapshot.settings.store;
  const { hasAll, until } = await new Backoff(ports, firstMsMax).until(async () => {
    const found = await findProgress(ports, { account: key.account, id });
    if (!found) throw refuseUnknownResponse(id);
    return checkEvents(ports, found, { after, eventMinutes });
  });
  const queue = new ResponseQueue(waitingLengthMax);
  const signal = request.hostEnds ?? new AbortController().signal;
  const delivery = new Delivery(ports, queue, { identity: { requestId: request.id }, key, signal });
  const poll = createFollower(ports, reader, { id, after, until });
  if (hasAll) queue.end();
  return {
    status: 200,
    headers: {
      'content-type': streamedAnswer.contentType,
      'cache-control': 'no-cache, no-transform',
      'x-request-id': request.id,
    },
    body: queue,
    endsHere: () => queue.endsHere,
    cut: queue.wasCut,
    closes: (closed) => delivery.closes(closed),
    done: hasAll ? Promise.resolve() : sendEvents(ports, poll, { queue, delivery, request }),
  };
}

/** Never rejects. */
async function sendEvents(
  { clock, log }: FollowPorts,
  poll: () => Promise<Polled>,
  { queue, delivery, request }: { queue: ResponseQueue; delivery: Delivery; request: RelayRequest },
): Promise<void> {
  const { hostEnds } = request;
  const untilMs = request.hostDeadlineMs - hostReserveMs;
  let saidMs = -Infinity;
  let reachedMs = clock.now();
  const push = (text: string): void => {
    queue.push(text);
    saidMs = clock.now();
  };
  while (!queue.clientLeft) {
    try {
      const { frames, over, more } = await poll();
      reachedMs = clock.now();
      for (const frame of frames) {
        await delivery.awaitRoom();
        push(frame);
      }
      if (over) break;
      if (more) continue;
    } catch (error) {
      // A refusal is for want of room, which comes back.
      const mayPass = [StoreUnavailable, StoreBusy, Refusal].some((kind) => error instanceof kind);
      if (!mayPass || clock.now() - reachedMs > refusedMsMax) {
        if (!mayPass && !(error instanceof EventsGone)) log.fault(request.id, error);
        delivery.cut('unrendered');
        break;
      }
    }
    if (clock.now() >= untilMs || hostEnds?.aborted) {
      delivery.cut('deadline');
      break;
    }
    if (clock.now() - saidMs >= idleMs) push(renderCommentFrame('ping'));
    await clock.sleep(pollMs, hostEnds);
  }
  queue.end();
  await delivery.awaitHandOver(untilMs);
  delivery.cut('deadline');
}

interface FollowProgress {
  head: ResponseHead;
  /** The number of events including the last, once it has ended. */
  end: number | undefined;
}

async function findProgress(
  { clock, stored }: Pick<FollowPorts, 'clock' | 'stored'>,
  { account, id }: { account: string; id: string },
): Promise<FollowProgress | undefined> {
  const nowSeconds = Math.floor(clock.now() / 1000);
  const read = (await stored.responses.heads(account, [id])).get(id);
  if (!read) return undefined;
  const head = await failIfRunDied(stored, read, nowSeconds);
  return { head, end: await countEventsAtEnd(stored.events, head, nowSeconds) };
}

/**
 * Checks which events are left for the reader and how long the run holds its claim. Throws an InvalidRequest if
 * the rest can't be sent.
 */
async function checkEvents(
  { clock, stored }: FollowPorts,
  { head, end }: FollowProgress,
  { after, eventMinutes }: { after: number; eventMinutes: number },
): Promise<{ hasAll: boolean; until: number }> {
  const { background } = head;
  if (!background?.streamed)
    throw refuseValue(
      'stream',
      "'stream' needs a response that was created with background: true and stream: true. Retrieve this one without it.",
    );
  const { until, eventsUntil = until + eventMinutes * 60 } = background;
  const isBeyond = end === undefined ? !(await isKept(stored, head, after)) : after >= end;
  const isOver = end !== undefined && Math.floor(clock.now() / 1000) >= eventsUntil;
  if (isBeyond && !isOver)
    throw refuseValue(
      'starting_after',
      `'starting_after' is ${after}, which is beyond the last event of the response so far. Send the sequence_number of the last event that you received.`,
    );
  const lacksSome = end !== undefined && end > 2 && after < end - 2;
  if (isOver || (lacksSome && (await stored.events.after(head, after)).length === 0))
    throw refuseValue(
      'stream',
      `The events of this response were deleted ${eventMinutes} minutes after its end. Retrieve it without 'stream'.`,
    );
  return { hasAll: end !== undefined && after === end - 1, until };
}

/** True if the event is still stored. The first one always is. */
async function isKept({ events }: StoredPorts, head: ResponseHead, number: number): Promise<boolean> {
  if (number <= 0) return true;
  const batches = await events.after(head, number - 1);
  return batches.some(({ from, frames }) => (frames[number - from] ?? endMark) !== endMark);
}

function readStartingAfter(text: string | null): number {
  if (text === null) return -1;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw refuseValue('starting_after', "'starting_after' must be the sequence_number of an event.");
}

const refuseValue = (param: string, message: string): InvalidRequest =>
  new InvalidRequest('invalid_value', param, message);

/** The events can't be shown any more: deleted, expired, or too old. */
class EventsGone extends Error {
  override readonly name = 'EventsGone';
}

interface Polled {
  frames: string[];
  /** True if these are the last events. */
  over: boolean;
  /** The next poll need not wait. */
  more: boolean;
}

/**
 * Polls the events of one response in order, as they come, for one reader: skips none and shows none twice. A poll throws
 * EventsGone, a Refusal, StoreUnavailable or StoreBusy; after the last three it may be repeated, and nothing is lost.
 * @param after the number of the last event that the reader has. -1: none
 * @param until how long the run holds its claim, as far as is known (Unix seconds)
 */
export function createFollower(
  ports: Pick<FollowPorts, 'clock' | 'stored'>,
  reader: StoredReader,
  { id, after, until: claimedUntil }: { id: string; after: number; until: number },
): () => Promise<Polled> {
  const { clock, stored } = ports;
  const of = { account: reader.account, id };
  let position = after;
  let until = claimedUntil;
  let end: number | undefined;
  let isClosing = false;
  let headAtMs = 0;

  /**
   * The run has lost its claim, as far as is known. Its events are shown once they are counted: one that comes too late
   * would be seen by this reader alone.
   */
  const isStale = (): boolean => end === undefined && Math.floor(clock.now() / 1000) > until;

  async function look(): Promise<void> {
    const nowMs = clock.now();
    const found = await findProgress(ports, of);
    if (!found) throw new EventsGone();
    headAtMs = nowMs + headMs;
    until = found.head.background?.until ?? until;
    ({ end } = found);
  }

  async function response(): Promise<StoredResponse> {
    const found = (await stored.responses.read(of.account, [id], reader.admit)).get(id);
    // Only the frame that is made of it stays.
    reader.release();
    if (!found) throw new EventsGone();
    return found;
  }

  return async () => {
    if (isStale()) await look();
    // Read before the events: where there are none, it is as it was accepted.
    const first = position < 0 ? await response() : undefined;
    const batches = await stored.events.after(of, position);
    if (isStale()) return { frames: [], over: false, more: false };
    // Those that the reader has not seen, and that belong to the response as it ended.
    const frames: string[] = [];
    for (const { from, frames: kept } of batches)
      for (const [i, frame] of kept.entries()) {
        if (frame === endMark) isClosing = true;
        else if (from + i === position + frames.length + 1 && from + i < (end ?? Infinity) - 1)
          frames.push(frame);
      }
    if (first && position + frames.length < 0) frames.push(renderCreatedFrame(first.body.response));
    const last = position + frames.length;
    let over = false;
    if (end === undefined) {
      if (isClosing || last <= 0 || clock.now() >= headAtMs) await look();
    } else if (last < end - 2) {
      if (frames.length === 0) throw new EventsGone();
    } else {
      const { head, body } = await response();
      frames.push(renderLastFrame(showResponse(head.status, body.response), Math.max(end - 1, last + 1)));
      over = true;
    }
    position = last;
    const length = frames.reduce((sum, frame) => sum + frame.length, 0);
    return { frames, over, more: end !== undefined || length >= muchLength };
  };
}
