/** Puts the pieces of OpenRouter's `reasoning_details` together again, so that each block comes back whole. */
import { bytesOf, type Kept } from '../../../wire/chunk-content.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';

/** The fields of text. Encrypted blocks come whole. */
const textFields = ['text', 'summary'] as const;

export class DetailBlocks {
  readonly blocks: JsonRecord[] = [];
  readonly #kept: Kept;

  constructor(kept: Kept) {
    this.#kept = kept;
  }

  push(pieces: readonly JsonRecord[]): void {
    for (const piece of pieces) {
      const last = this.blocks.at(-1);
      if (last && continues(last, piece)) {
        this.#kept.bytes(addedBytes(last, piece));
        this.blocks[this.blocks.length - 1] = joined(last, piece);
      } else {
        this.#kept.value(piece);
        this.blocks.push(piece);
      }
    }
  }
}

/** Only neighbours are joined, because the order of blocks is part of what is checked. */
const continues = (block: JsonRecord, piece: JsonRecord): boolean =>
  block['type'] === piece['type'] &&
  block['index'] === piece['index'] &&
  textFields.some((field) => typeof block[field] === 'string' || typeof piece[field] === 'string') &&
  (block['signature'] ?? undefined) === undefined;

/** What a piece adds to its block: texts grow, and what is the same takes no more room. */
function addedBytes(block: JsonRecord, piece: JsonRecord): number {
  let bytes = 0;
  for (const [field, value] of Object.entries(piece)) if (value !== block[field]) bytes += bytesOf(value);
  return bytes;
}

function joined(block: JsonRecord, piece: JsonRecord): JsonRecord {
  const said = Object.entries(piece).filter(([, value]) => value !== null && value !== undefined);
  const whole: JsonRecord = { ...block, ...Object.fromEntries(said) };
  for (const field of textFields) {
    const [before, next] = [block[field], piece[field]];
    if (typeof before === 'string' && typeof next === 'string') whole[field] = before + next;
  }
  return whole;
}
