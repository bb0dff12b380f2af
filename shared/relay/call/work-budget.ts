/**
 * Limits the work of one request before it goes upstream. A unit is the time to unpack and parse one byte of a
 * body, about 10 ns of processor, so the whole budget is 1.3 s: decision 90 has the measurements.
 */
import type { Inflate } from '../ports/host.ts';
import { refuse } from '../http/refusal.ts';

const workMost = 128 * 1024 * 1024;
/** Units of each. */
const costs = { value: 250, seal: 10_000, storedCharacter: 2, inflatedByte: 3 };

export class WorkBudget {
  #left = workMost;

  /** Throws a Refusal. `length`: in bytes, unpacked. */
  readBody(length: number, values: number): void {
    this.#draw(length + values * costs.value, 'the body');
  }

  /** False: there is no work left for another seal. `length`: of the text in it; one that does not open costs as much as an empty one. */
  openState(length: number): boolean {
    this.#left -= costs.seal + length;
    return this.#left > 0;
  }

  /** Throws a Refusal. `length`: in UTF-16 code units. */
  readStored(length: number): void {
    this.#draw(length * costs.storedCharacter, 'stored responses');
  }

  /** Inflates what is left work for. Throws a Refusal. */
  limitInflate(inflate: Inflate): Inflate {
    return (bytes, lengthMax) => {
      const text = inflate(bytes, lengthMax);
      this.#draw((text?.length ?? lengthMax) * costs.inflatedByte, 'files');
      return text;
    };
  }

  #draw(units: number, what: string): void {
    if (units <= this.#left) {
      this.#left -= units;
      return;
    }
    const left = Math.max(0, this.#left);
    throw refuse(
      'too_much_work',
      `The request asks for too much work: reading ${what} takes ${units} units, and ${left} of the ${workMost} that a request has are left. Send less at once: fewer values, stored responses, encrypted items or files.`,
    );
  }
}
