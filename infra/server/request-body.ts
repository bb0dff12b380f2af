/** Reads the body of a request into one buffer, within a budget. */
import type { IncomingMessage } from 'node:http';
import { bodyBytesMax } from '../../shared/adapters/http-entry/json-body.ts';
import type { Arrivals, Leaving } from './arrivals.ts';
import type { ByteBudget, Claim } from './byte-budget.ts';

/** As Lambda: a body above it is not read to its end. The relay refuses all above `bodyBytesMax`, once it knows the key. */
const readBytesMax = 6 * 1024 * 1024;
const firstCapacity = 16 * 1024;

/** Why a body was not kept. `gone`: the client left before its end. */
export type BodyFault = 'too_large' | 'no_room' | 'gone' | Leaving;

export interface BodyRoom {
  budget: ByteBudget;
  /** Of this request. */
  claim: Claim;
  arrivals: Arrivals;
}

/**
 * The bytes, or why there are none. A body without room is read to its end and dropped: many clients read no answer before
 * they have sent all.
 */
export function readBody(request: IncomingMessage, room: BodyRoom): Promise<Buffer | BodyFault> {
  const { budget, claim, arrivals } = room;
  const { headers } = request;
  const announced = Number(headers['content-length'] ?? 0);
  if (announced > readBytesMax) return Promise.resolve('too_large');
  const encoding = headers['content-encoding'] ?? 'identity';
  return new Promise((resolve) => {
    let size = 0;
    const take = (piece: Buffer): void => {
      size += piece.length;
      kept.append(piece);
      if (size > readBytesMax) end('too_large');
    };
    const end = (result: Buffer | BodyFault): void => {
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
    const isHopeless = !budget.hasRoomFor(announced) && !arrival.canMakeRoom();
    // A few bytes may become as many as a body may have.
    if (isHopeless || (encoding !== 'identity' && !takeRoom(bodyBytesMax))) kept.drop();
    request.on('data', take);
    request.once('end', () => end(kept.bytes ?? 'no_room'));
    request.once('close', () => end('gone'));
    request.on('error', () => end('gone'));
  });
}

/**
 * What came of a body, copied together as it comes: a client may send it byte by byte, and an object for each of four
 * million pieces is a hundred times their size.
 */
class Kept {
  readonly #claim: Pick<Claim, 'take' | 'release'>;
  readonly #announced: number;
  #buffer: Buffer | undefined = Buffer.alloc(0);
  #length = 0;

  constructor(announced: number, claim: Pick<Claim, 'take' | 'release'>) {
    this.#claim = claim;
    this.#announced = announced;
  }

  /** Undefined: there was no room. */
  get bytes(): Buffer | undefined {
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
