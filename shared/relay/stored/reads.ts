/**
 * A response as its readers find it. Must never ask the store for what has not the form of an id: sort keys have other
 * forms beside it.
 */
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { RelayRequest, RelayResponse, HeldRoom } from '../http/http.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
import { Backoff } from '../money/backoff.ts';
import type { StoredResponse, EventLog, RunStore, ResponseHead, Admit } from '../ports/stored.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { ChatCall } from '../call/call.ts';
import { counterKey } from '../money/reservation-request.ts';

const storedId = /^resp-[0-9a-z]{26}$/;
/** How long a store that throttles is asked again, while a client waits. */
const storeMsMax = 2_000;

export const isStoredId = (id: string): boolean => storedId.test(id);

/** The same whatever the reason, and of any text that was sent as an id. */
export const noSuchResponse = (id: string): Refusal =>
  refuse('response_not_found', `Response with id '${id.slice(0, 64)}' not found.`, { param: 'id' });

export type ReadPorts = Pick<ChatPorts, 'clock' | 'random' | 'stored'>;

/** A call of the store that is safe to repeat. Throws StoreUnavailable. */
export const asked = <T>(ports: ReadPorts, call: () => Promise<T>): Promise<T> =>
  new Backoff(ports, storeMsMax).until(call);

/** One whose run is dead is found failed. Throws a Refusal or StoreUnavailable. */
export async function foundResponse(
  ports: ReadPorts,
  account: string,
  { id, reads }: Pick<AskedStored, 'id' | 'reads'>,
): Promise<StoredResponse> {
  const { clock, stored } = ports;
  const read = async (): Promise<StoredResponse> => {
    reads.release();
    const found = await asked(ports, () => stored.responses.read(account, [id], reads.admit));
    const response = found.get(id);
    if (!response) throw noSuchResponse(id);
    return response;
  };
  const { head, body } = await read();
  const nowSeconds = Math.floor(clock.now() / 1000);
  const end = await asked(ports, () => foundEnd(stored, head, nowSeconds));
  // A run that stood still may have ended meanwhile: then its content is newer than what was read.
  return end.status === head.status || end.status === 'failed' ? { head: end, body } : read();
}

/** Content is kept by no cache on its way. */
export const jsonOf = (request: RelayRequest, value: object): RelayResponse => ({
  status: 200,
  headers: {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-request-id': request.id,
  },
  body: JSON.stringify(value),
  done: Promise.resolve(),
});

// Who asks for what is stored: the key decides the account, which is part of the name of everything stored.

export interface StoredCaller {
  key: KeyRow;
  snapshot: Snapshot;
}

/** `id`: has the form of an id, which is all that is known of it. */
export interface AskedStored {
  id: string;
  request: RelayRequest;
  reads: StoredReads;
}

// Where a background response stands, as every reader of it finds: a run that has not prolonged its claim is dead, and
// what it had in hand may no longer be written. Must find the same end for all readers, also when the run comes back.

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

// What one request may read of what is stored: so much, and as often and as much at once as its key may call. A request of
// three kilobytes can name a hundred contents of megabytes; 16 such requests ended a server with all its tenants. Must be
// asked before any content is unpacked.

/**
 * UTF-16 code units of contents as JSON. Three times what a conversation may have: each response also repeats the tools and
 * the instructions of its request.
 */
export const unpackedLengthMax = 32 * 1024 * 1024;
const countMsMax = 1_500;

/** The contents that one request has unpacked. */
export class StoredReads {
  readonly #room: HeldRoom | undefined;
  #left = unpackedLengthMax;
  #taken = 0;

  constructor({ room }: { room?: HeldRoom | undefined }) {
    this.#room = room;
  }

  /** Throws an InvalidRequest. */
  readonly checkFits = (length: number): void => {
    if (length > this.#left)
      throw new InvalidRequest(
        'conversation_too_long',
        null,
        `The stored responses that this request reads have more than ${unpackedLengthMax} characters as JSON together. Send what matters of them as input.`,
      );
  };

  /** Throws an InvalidRequest, or a Refusal while the host has no room for more. */
  readonly admit: Admit = (length) => {
    this.checkFits(length);
    if (this.#room?.take(length) === false) throw noRoom();
    this.#left -= length;
    this.#taken += length;
  };

  /** Nothing of what was read is held any more. */
  release(): void {
    this.#room?.give(this.#taken);
    this.#left += this.#taken;
    this.#taken = 0;
  }
}

const noRoom = (): Refusal =>
  refuse(
    'unavailable',
    'This server has no room for the stored responses right now. Nothing was charged; try again.',
    { headers: { 'retry-after': '1' }, reason: 'server_no_room' },
  );

interface Reading {
  key: ChatCall['key'];
  requestId: string;
}

type CountPorts = Pick<ChatPorts, 'clock' | 'random' | 'counters' | 'log'>;

/** Counts one more read in its key's minute, if that has a limit. Throws a Refusal or StoreUnavailable. */
export async function countRead(ports: CountPorts, { key }: Pick<Reading, 'key'>): Promise<void> {
  const { rpm } = key;
  if (rpm === undefined) return;
  const minute = minuteOf(ports);
  const count = await counted(ports, () => ports.counters.countCall(counterKey(key), minute, rpm));
  if (count === undefined) throw await refusedFor(ports, key, 'rate');
}

/**
 * Reads while no more reads of the key are under way than it may have calls at once. Counted by the minute, so that what a
 * crash leaves counts for a minute alone. Throws a Refusal or StoreUnavailable.
 */
export async function amongReads<T>(
  ports: CountPorts,
  { key, requestId }: Reading,
  read: () => Promise<T>,
): Promise<T> {
  const most = key.max_concurrency;
  if (most === undefined) return read();
  const { counters, log } = ports;
  const minute = minuteOf(ports);
  const counter = { key: counterKey(key), period: `reads-${minute}`, expires: (minute + 5) * 60 };
  const held = await counted(ports, () => counters.hold({ ...counter, name: requestId }, 1n, BigInt(most)));
  if (!held.done) throw await refusedFor(ports, key, 'concurrency');
  try {
    return await read();
  } finally {
    await counted(ports, () => counters.change(counter, { used: -1n, running: -1 })).catch((error: unknown) =>
      log.fault(requestId, error),
    );
  }
}

const minuteOf = ({ clock }: CountPorts): number => Math.floor(clock.now() / 60_000);

const counted = <T>(ports: CountPorts, write: () => Promise<T>): Promise<T> =>
  new Backoff(ports, countMsMax).until(write);

async function refusedFor({ clock }: CountPorts, key: ChatCall['key'], reason: 'rate' | 'concurrency') {
  const { limitRefusal } = await import('../money/reserve-refusals.ts');
  return limitRefusal({ key, reason, nowMs: clock.now() });
}
