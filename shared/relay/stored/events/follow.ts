/**
 * Streams the events of a background response, from one on, until its end: to the caller who created it and to whoever
 * comes back. All readers get the same events, however often they were cut off. Must never show what is another
 * account's, nor end as if an answer were whole that is not.
 */
import { idleMs, streamedAnswer } from '../../../endpoints/renderer.ts';
import { commentFrame } from '../../../stream/sse-encode.ts';
import { InvalidRequest } from '../../../wire/invalid-request.ts';
import { Delivery } from '../../answer/delivery.ts';
import { ResponseQueue } from '../../answer/response-queue.ts';
import type { ChatCall } from '../../call/chat-call.ts';
import type { ChatPorts } from '../../call/chat-ports.ts';
import type { RelayResponse } from '../../http/http.ts';
import { refuse, Refusal } from '../../http/refusal.ts';
import { Backoff } from '../../money/backoff.ts';
import type { ResponseHead } from '../../ports/stored/stored-response.ts';
import { StoreBusy, StoreUnavailable } from '../../ports/stores/store-errors.ts';
import { storeSettings } from '../may-store.ts';
import type { AskedStored } from '../stored-caller.ts';
import { EventsGone, Follower } from './follower.ts';
import { placeIsLost, takenPlace } from './follower-place.ts';
import { endMark, eventsAtEnd, foundEnd } from '../run-end.ts';

/** The time between two looks at the store: what a minute of them costs is in docs/cost.md. */
const pollMs = 500;
/** How long a store that refuses is asked again. */
const refusedMsMax = 30_000;
/** Lambda kills at its time-out without notice: the connection is broken before, and the client comes back. */
const hostReserveMs = 5_000;
/** How much text may wait for a slow client (UTF-16 code units). */
const waitingLengthMax = 1024 * 1024;

/** How long a store that throttles is asked again before anything is sent. */
const firstMsMax = 2_000;

export type FollowPorts = Pick<ChatPorts, 'clock' | 'log' | 'random' | 'stored'>;

/**
 * Of a POST all events; of a GET those after its `starting_after`. Throws, before anything is sent, a Refusal or an
 * InvalidRequest or StoreUnavailable.
 */
export async function follow(
  ports: FollowPorts,
  caller: Pick<ChatCall, 'key' | 'snapshot'>,
  { id, request, reads }: AskedStored,
): Promise<RelayResponse> {
  const { account } = caller.key;
  const after = request.method === 'POST' ? -1 : startingAfter(request.query.get('starting_after'));
  const { eventMinutes } = storeSettings(caller.snapshot);
  const { hasAll, until } = await new Backoff(ports, firstMsMax).until(async () => {
    const head = (await ports.stored.responses.heads(account, [id])).get(id);
    if (!head)
      throw refuse('response_not_found', `Response with id '${id.slice(0, 64)}' not found.`, { param: 'id' });
    return checkEvents(ports, head, { after, eventMinutes });
  });
  const place = hasAll
    ? 0
    : await new Backoff(ports, firstMsMax).until(() => takenPlace(ports, { account, id }));
  const queue = new ResponseQueue(waitingLengthMax);
  const signal = request.hostEnds ?? new AbortController().signal;
  const delivery = new Delivery(ports, queue, {
    identity: { requestId: request.id },
    key: caller.key,
    signal,
  });
  const follower = new Follower(ports, { account, id, after, until, reads });
  const untilMs = request.hostDeadlineMs - hostReserveMs;
  if (hasAll) queue.end();
  const done = hasAll
    ? Promise.resolve()
    : handWhileInPlace(ports, {
        handed: { queue, delivery, follower, untilMs, signal, requestId: request.id },
        held: { of: { account, id }, place },
      });
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
    done,
  };
}

interface Handed {
  queue: ResponseQueue;
  delivery: Delivery;
  follower: Follower;
  untilMs: number;
  signal: AbortSignal;
  requestId: string;
}

/** Never rejects. */
async function handWhileInPlace(
  ports: FollowPorts,
  { handed, held }: { handed: Handed; held: { of: { account: string; id: string }; place: number } },
): Promise<void> {
  const over = new AbortController();
  // Also of one that waits for its client.
  const watched = placeIsLost(ports, held, over.signal).then((isLost) => {
    if (isLost) handed.delivery.cut('replaced');
  });
  await handEvents(ports, handed);
  over.abort('over');
  await watched;
}

/** Never rejects. */
async function handEvents({ clock, log }: FollowPorts, handed: Handed): Promise<void> {
  const { queue, delivery, follower, untilMs, signal, requestId } = handed;
  let saidMs = -Infinity;
  let reachedMs = clock.now();
  const push = (text: string): void => {
    queue.push(text);
    saidMs = clock.now();
  };
  while (!queue.clientLeft) {
    try {
      const { frames, over, more } = await follower.poll();
      reachedMs = clock.now();
      for (const frame of frames) {
        await delivery.room();
        push(frame);
      }
      if (over) break;
      if (more) continue;
    } catch (error) {
      // A refusal is for want of room, which comes back.
      const mayPass = [StoreUnavailable, StoreBusy, Refusal].some((kind) => error instanceof kind);
      if (!mayPass || clock.now() - reachedMs > refusedMsMax) {
        if (!mayPass && !(error instanceof EventsGone)) log.fault(requestId, error);
        delivery.cut('unrendered');
        break;
      }
    }
    if (clock.now() >= untilMs || signal.aborted) {
      delivery.cut('deadline');
      break;
    }
    if (clock.now() - saidMs >= idleMs) push(commentFrame('ping'));
    await clock.sleep(pollMs, signal);
  }
  queue.end();
  await delivery.handOver(untilMs);
  delivery.cut('deadline');
}

/** Whether the reader has all events already, and how long the run holds its claim. Throws an InvalidRequest where the rest cannot be sent. */
async function checkEvents(
  { clock, stored }: FollowPorts,
  read: ResponseHead,
  { after, eventMinutes }: { after: number; eventMinutes: number },
): Promise<{ hasAll: boolean; until: number }> {
  const nowSeconds = Math.floor(clock.now() / 1000);
  const head = await foundEnd(stored, read, nowSeconds);
  const { background } = head;
  if (!background?.streamed)
    throw new InvalidRequest(
      'invalid_value',
      'stream',
      "'stream' needs a response that was created with background: true and stream: true. Retrieve this one without it.",
    );
  const end = await eventsAtEnd(stored.events, head, nowSeconds);
  const keptUntil = background.eventsUntil ?? background.until + eventMinutes * 60;
  if (end !== undefined && nowSeconds >= keptUntil) throw noLongerKept(eventMinutes);
  if (end === undefined ? !(await isKept(stored.events, head, after)) : after >= end)
    throw new InvalidRequest(
      'invalid_value',
      'starting_after',
      `'starting_after' is ${after}, which is beyond the last event of the response so far. Send the sequence_number of the last event that came.`,
    );
  const { until } = background;
  if (end === undefined) return { hasAll: false, until };
  if (after < end - 2 && (await stored.events.after(head, after)).length === 0 && end > 2)
    throw noLongerKept(eventMinutes);
  return { hasAll: after === end - 1, until };
}

/** Whether an event is kept. The first of all is always there. */
async function isKept(
  events: FollowPorts['stored']['events'],
  of: { account: string; id: string },
  number: number,
): Promise<boolean> {
  if (number <= 0) return true;
  const batches = await events.after(of, number - 1);
  return batches.some(({ from, frames }) => (frames[number - from] ?? endMark) !== endMark);
}

const noLongerKept = (eventMinutes: number): InvalidRequest =>
  new InvalidRequest(
    'invalid_value',
    'stream',
    `The events of this response are no longer kept: they are for ${eventMinutes} minutes after its end. Retrieve it without 'stream'.`,
  );

function startingAfter(text: string | null): number {
  if (text === null) return -1;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidRequest(
    'invalid_value',
    'starting_after',
    "'starting_after' must be the sequence_number of an event.",
  );
}
