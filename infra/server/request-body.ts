/** Reads the body of a request into one buffer, within a budget. */
import type { IncomingMessage } from 'node:http';
import type { HeldRoom } from '../../shared/relay/http/http.ts';

const firstCapacity = 16 * 1024;

/** Bytes of one body in one turn of the event loop. Without it Node reads up to 2 MB from a connection before it turns to the next. */
const turnBytes = 64 * 1024;

/** Why a body was not kept. `gone`: the client left before its end. */
export type BodyFault = 'too_large' | 'no_room' | 'gone' | Leaving;

interface BodyRoom {
  /** A body above it is not read to its end. */
  bytesMax: number;
  budget: ByteBudget;
  claim: Claim;
  arrivals: Arrivals;
}

/**
 * The bytes, or why there are none. A body without room is read to its end and dropped: many clients read no answer before
 * they have sent all.
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
      arrival.came(size);
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
 * The received bytes, copied together as they arrive: a client may send a body byte by byte, and an object for
 * each of four million pieces needs a hundred times their size.
 */
class Kept {
  readonly #claim: Pick<Claim, 'take' | 'release'>;
  readonly #announced: number;
  /** In memory of its own, so that it can be moved to another thread. */
  #buffer: Buffer<ArrayBuffer> | undefined = Buffer.alloc(0);
  #length = 0;

  constructor(announced: number, claim: Pick<Claim, 'take' | 'release'>) {
    this.#claim = claim;
    this.#announced = announced;
  }

  /** Missing if there was no room. */
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
 * Requests whose bodies are on their way. They keep a place here and no place among those that are answered: a client that
 * sends slowly, or nothing more, must never keep out one that sends at once.
 */

/** Why a request goes before its body has come. */
type Leaving = 'slow' | 'ending';

interface Arrival {
  /** So many bytes of its body. */
  came(size: number): void;
  /** Its body has come, or never will. */
  end(): void;
  canMakeRoom(): boolean;
  /** Lets the slowest of the others go, so that its room is free. False: none of them is slow. */
  makeRoom(): boolean;
}

interface Place {
  /** When the body started, or last received another `slowBytes`. */
  sinceMs: number;
  nextBytes: number;
  leave: (why: Leaving) => void;
}

interface ArrivalBounds {
  /** At once. */
  most: number;
  /** A body that takes longer for each `slowBytes` goes where another one needs its room. */
  slowMs: number;
}

const slowBytes = 4 * 1024 * 1024;

export class Arrivals {
  readonly #bounds: ArrivalBounds;
  /** The oldest first. */
  readonly #places = new Set<Place>();

  constructor(bounds: ArrivalBounds) {
    this.#bounds = bounds;
  }

  get count(): number {
    return this.#places.size;
  }

  /**
   * Where there is no place, the oldest goes: most bodies come within a second, and those of slow clients are the oldest.
   * @param leave is called at most once, and then drops what has come of the body
   */
  begin(leave: Place['leave']): Arrival {
    const [oldest] = this.#places;
    if (oldest && this.#places.size >= this.#bounds.most) this.#leave(oldest, 'slow');
    const place = { sinceMs: performance.now(), nextBytes: slowBytes, leave };
    this.#places.add(place);
    return {
      came(size) {
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

// How many bytes of request bodies, and of the stored contents that they refer to, the requests of this process hold together.
// A platform that starts an environment for each call bounds that by itself; one process for many calls has to.

/** Seen by all threads. */
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

  /** Claims room as bytes arrive: bytes that a client only announces take no room from others. */
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

export interface Claim extends HeldRoom {
  /** Releases all that was taken. May be called again. */
  release(): void;
}

/**
 * Lets large bodies be worked on one in each turn of the event loop. Twenty of them in one turn take a second or two, in
 * which no reply of the store is read, and the time-outs of every other call run: they would all be refused.
 */
export class Turns {
  #last: Promise<void> = Promise.resolve();

  /** Resolves in a turn of the event loop in which nobody else's does. */
  next(): Promise<void> {
    this.#last = this.#last.then(
      () =>
        new Promise((resolve) => {
          setImmediate(resolve);
        }),
    );
    return this.#last;
  }
}
