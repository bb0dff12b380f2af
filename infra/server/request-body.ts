/** Reads the body of a request into one buffer, within a budget. */
import type { IncomingMessage } from 'node:http';
import { setImmediate as waitForTurn } from 'node:timers/promises';
import type { MemoryRoom } from '../../shared/relay/http/http.ts';

const firstCapacity = 16 * 1024;

/** The bytes of one body per turn of the event loop. Otherwise Node reads up to 2 MB from a connection before the next one. */
const turnBytes = 64 * 1024;

/** The reason why a body was not kept. `gone` means that the client left before its end. */
export type BodyFault = 'too_large' | 'no_room' | 'gone' | Leaving;

interface BodyRoom {
  /** Larger bodies are not read to their end. */
  bytesMax: number;
  budget: ByteBudget;
  claim: Claim;
  arrivals: Arrivals;
}

/**
 * Resolves with the bytes, or the reason why there are none. A body without room is read to its end and dropped, because many clients
 * read no answer before they sent everything.
 */
export function readBody(request: IncomingMessage, room: BodyRoom): Promise<Buffer<ArrayBuffer> | BodyFault> {
  const { bytesMax, budget, claim, arrivals } = room;
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > bytesMax) return Promise.resolve('too_large');
  return new Promise((resolve) => {
    let size = 0;
    let turnedAt = 0;
    const take = (piece: Buffer): void => {
      size += piece.length;
      if (size - turnedAt >= turnBytes) {
        turnedAt = size;
        request.pause();
        setImmediate(() => request.resume());
      }
      arrival.recordBytes(size);
      kept.append(piece);
      if (size > bytesMax) end('too_large');
    };
    const end = (result: Buffer<ArrayBuffer> | BodyFault): void => {
      request.off('data', take);
      arrival.end();
      resolve(result);
    };
    const arrival = arrivals.begin((why) => {
      kept.drop();
      end(why);
    });
    const takeRoom = (bytes: number): boolean => {
      while (!claim.take(bytes)) if (!arrival.makeRoom()) return false;
      return true;
    };
    const kept = new Kept(announced, { take: takeRoom, release: () => claim.release() });
    if (!budget.hasRoomFor(announced) && !arrival.canMakeRoom()) kept.drop();
    request.on('data', take);
    request.once('end', () => end(kept.bytes ?? 'no_room'));
    request.once('close', () => end('gone'));
    request.on('error', () => end('gone'));
  });
}

/**
 * Copies received bytes into one buffer as they arrive. A client may send a body byte by byte, and four million objects need a
 * hundred times the size of their bytes.
 */
class Kept {
  readonly #claim: Pick<Claim, 'take' | 'release'>;
  readonly #announced: number;
  /** Uses its own memory, so that it can be transferred to another thread. */
  #buffer: Buffer<ArrayBuffer> | undefined = Buffer.alloc(0);
  #length = 0;

  constructor(announced: number, claim: Pick<Claim, 'take' | 'release'>) {
    this.#claim = claim;
    this.#announced = announced;
  }

  /** Undefined if there was no room. */
  get bytes(): Buffer<ArrayBuffer> | undefined {
    return this.#buffer?.subarray(0, this.#length);
  }

  append(piece: Buffer): void {
    if (!this.#buffer) return;
    const length = this.#length + piece.length;
    if (length > this.#buffer.length && !this.#grow(length)) return this.drop();
    piece.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  drop(): void {
    this.#buffer = undefined;
    this.#claim.release();
  }

  #grow(length: number): boolean {
    const before = this.#buffer ?? Buffer.alloc(0);
    const doubled = Math.max(firstCapacity, before.length * 2);
    const capacity = Math.max(length, this.#announced > 0 ? Math.min(doubled, this.#announced) : doubled);
    if (!this.#claim.take(capacity - before.length)) return false;
    this.#buffer = Buffer.allocUnsafeSlow(capacity);
    before.copy(this.#buffer, 0, 0, this.#length);
    return true;
  }
}

/**
 * Requests whose bodies are arriving. They count apart from those being answered, because a client that sends slowly must never
 * block one that sends at once.
 */

/** The reason to drop a request before its body is complete. */
type Leaving = 'slow' | 'ending';

interface Arrival {
  /** Reports received bytes of the body. */
  recordBytes(size: number): void;
  /** Reports that the body is complete, or never will be. */
  end(): void;
  canMakeRoom(): boolean;
  /** Drops the slowest other request to free its room. Returns false if none is slow. */
  makeRoom(): boolean;
}

interface Place {
  /** The time when the body started, or last received another `slowBytes`. */
  sinceMs: number;
  nextBytes: number;
  leave: (why: Leaving) => void;
}

interface ArrivalBounds {
  /** The most arriving requests at once. */
  most: number;
  /** A body that takes longer for `slowBytes` is dropped if another one needs its room. */
  slowMs: number;
}

const slowBytes = 4 * 1024 * 1024;

export class Arrivals {
  readonly #bounds: ArrivalBounds;
  /** Ordered by age, the oldest first. */
  readonly #places = new Set<Place>();

  constructor(bounds: ArrivalBounds) {
    this.#bounds = bounds;
  }

  get count(): number {
    return this.#places.size;
  }

  /**
   * Drops the oldest request if there are too many. Most bodies arrive within a second, so the oldest belong to slow clients.
   * @param leave is called at most once, to drop the received bytes
   */
  begin(leave: Place['leave']): Arrival {
    const [oldest] = this.#places;
    if (oldest && this.#places.size >= this.#bounds.most) this.#leave(oldest, 'slow');
    const place = { sinceMs: performance.now(), nextBytes: slowBytes, leave };
    this.#places.add(place);
    return {
      recordBytes(size) {
        if (size < place.nextBytes) return;
        place.sinceMs = performance.now();
        place.nextBytes = size + slowBytes;
      },
      end: () => void this.#places.delete(place),
      canMakeRoom: () => this.#findSlowest(place) !== undefined,
      makeRoom: () => {
        const slow = this.#findSlowest(place);
        if (slow) this.#leave(slow, 'slow');
        return slow !== undefined;
      },
    };
  }

  dismissAll(): void {
    for (const place of this.#places) this.#leave(place, 'ending');
  }

  #findSlowest(asking: Place): Place | undefined {
    const nowMs = performance.now();
    for (const place of this.#places)
      if (place !== asking && nowMs - place.sinceMs >= this.#bounds.slowMs) return place;
    return undefined;
  }

  #leave(place: Place, why: Leaving): void {
    this.#places.delete(place);
    place.leave(why);
  }
}

// Limits the bytes of request bodies, and of the stored content that they refer to, of all requests in this process. Lambda
// limits them by running one call per environment; a process for many calls must do it.

/** Shared by all threads. */
export type BytesLeft = BigInt64Array<SharedArrayBuffer>;

export function createByteBudget(bytes: number): BytesLeft {
  const left = new BigInt64Array(new SharedArrayBuffer(BigInt64Array.BYTES_PER_ELEMENT));
  left[0] = BigInt(bytes);
  return left;
}

export class ByteBudget {
  readonly #left: BytesLeft;

  constructor(left: BytesLeft) {
    this.#left = left;
  }

  hasRoomFor(bytes: number): boolean {
    return BigInt(bytes) <= Atomics.load(this.#left, 0);
  }

  /** Claims room as bytes arrive, so that merely announced bytes take no room from others. */
  claim(): Claim {
    let taken = 0;
    const give = (bytes: number): void => {
      Atomics.add(this.#left, 0, BigInt(bytes));
      taken -= bytes;
    };
    return {
      take: (bytes) => {
        taken += bytes;
        const fits = Atomics.sub(this.#left, 0, BigInt(bytes)) >= BigInt(bytes);
        if (!fits) give(bytes);
        return fits;
      },
      give,
      release: () => give(taken),
    };
  }
}

export interface Claim extends MemoryRoom {
  /** Releases everything. Can be called again. */
  release(): void;
}

/**
 * Processes one large body per turn of the event loop. Twenty in one turn take a second or two. Meanwhile no reply of the store is
 * read, and the calls of everybody would time out.
 */
export class Turns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves in a turn of the event loop that no other caller gets. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => waitForTurn());
    return this.#last;
  }
}
