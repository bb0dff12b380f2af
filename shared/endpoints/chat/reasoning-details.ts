import type { Kept } from '../../wire/chunk-content.ts';
import { isRecord, type JsonRecord } from '../../wire/json-record.ts';

/** The fields whose pieces are joined. */
const texts = new Set(['text', 'summary']);

/**
 * OpenRouter's `reasoning_details`, joined from the pieces of a stream as its own answers that do not stream have them:
 * pieces in a row of one type and index are one detail, encrypted ones aside, which come whole. Details go back to the upstream, so nothing of them is lost.
 */
export class ReasoningDetails {
  readonly list: unknown[] = [];
  readonly #kept: Kept;

  constructor(kept: Kept) {
    this.#kept = kept;
  }

  push(pieces: readonly unknown[]): void {
    for (const piece of pieces) {
      const last = this.list.at(-1);
      if (isRecord(piece) && isRecord(last) && samePlace(last, piece)) join(last, piece, this.#kept);
      else {
        this.#kept.value(piece);
        this.list.push(isRecord(piece) ? { ...piece } : piece);
      }
    }
  }
}

const samePlace = (a: JsonRecord, b: JsonRecord): boolean =>
  typeof b['index'] === 'number' &&
  a['index'] === b['index'] &&
  a['type'] === b['type'] &&
  b['data'] === undefined;

function join(last: JsonRecord, piece: JsonRecord, kept: Kept): void {
  for (const [field, value] of Object.entries(piece)) {
    const before = last[field];
    const grows = texts.has(field) && typeof before === 'string' && typeof value === 'string';
    if (grows) {
      kept.text(value);
      last[field] = before + value;
    } else if (value !== null && value !== '') {
      if (value !== before) kept.value(value);
      last[field] = value;
    }
  }
}
