/** One piece of a tool call, whichever of its fields the upstream sent and how. */
import { asRecord, isRecord, type JsonRecord } from '../../../../wire/json-record.ts';

/** Longer ids than any vendor has are no ids. */
const idLengthMax = 1024;

export interface CallPiece {
  index: number | undefined;
  id: string | undefined;
  name: string | undefined;
  /** Arguments, or the input of a custom call. */
  text: string;
  custom: boolean;
  /** The vendor's state of the call. */
  extra: JsonRecord | undefined;
  /** It has state alone. */
  isStateOnly: boolean;
  /** The place among the pieces of its delta; undefined: it is the only one. */
  position: number | undefined;
}

export function readPiece(piece: JsonRecord, position: number | undefined): CallPiece {
  const called = asRecord(piece['function']);
  const custom = asRecord(piece['custom']);
  // A `custom` without content stands beside the function at some upstreams and means nothing.
  const isCustom =
    nonEmpty(called['name']) === undefined &&
    (nonEmpty(custom['name']) !== undefined ||
      nonEmpty(custom['input']) !== undefined ||
      piece['type'] === 'custom');
  const id = nonEmpty(piece['id']);
  const name = nonEmpty((isCustom ? custom : called)['name']);
  const text = argumentsText(isCustom ? custom['input'] : called['arguments']);
  const extra = isRecord(piece['extra_content']) ? piece['extra_content'] : undefined;
  return {
    index: indexOf(piece['index']),
    id: id !== undefined && id.length <= idLengthMax ? id : undefined,
    name,
    text,
    custom: isCustom,
    extra,
    isStateOnly: extra !== undefined && name === undefined && text === '',
    position,
  };
}

/** Some upstreams write the index as a string. */
function indexOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : undefined;
}

function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

const nonEmpty = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
