/**
 * How many bytes of request bodies, and of the stored contents that they refer to, the requests of this process hold together.
 * A platform that starts an environment for each call bounds that by itself; one process for many calls has to.
 */
import type { HeldRoom } from '../../shared/relay/http/http.ts';

export class ByteBudget {
  #left: number;

  constructor(bytesMax: number) {
    this.#left = bytesMax;
  }

  hasRoomFor(bytes: number): boolean {
    return bytes <= this.#left;
  }

  /** What one request takes, as it arrives: bytes that a client only announces keep no room from others. */
  claim(): Claim {
    let taken = 0;
    return {
      take: (bytes) => {
        if (!this.hasRoomFor(bytes)) return false;
        this.#left -= bytes;
        taken += bytes;
        return true;
      },
      give: (bytes) => {
        this.#left += bytes;
        taken -= bytes;
      },
      release: () => {
        this.#left += taken;
        taken = 0;
      },
    };
  }
}

export interface Claim extends HeldRoom {
  /** Releases all that was taken. May be called again. */
  release(): void;
}
