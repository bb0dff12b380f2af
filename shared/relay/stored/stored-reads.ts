/**
 * What one request may read of what is stored: so much, and as often and as much at once as its key may call. A request of
 * three kilobytes can name a hundred contents of megabytes; 16 such requests ended a server with all its tenants. Must be
 * asked before any content is unpacked.
 */
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { ChatCall } from '../call/chat-call.ts';
import type { ChatPorts } from '../call/chat-ports.ts';
import type { HeldRoom } from '../http/http.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
import { Backoff } from '../money/backoff.ts';
import { counterKey } from '../money/reservation-request.ts';
import type { Admit } from '../ports/stored/response-store.ts';

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
