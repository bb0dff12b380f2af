/** The state in which the relay finds a key, in words: the same rules as a request meets. */
import { isoTime } from '../../wire/iso-time.ts';
import { KeyRow } from '../../config/rows/key-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { RawRow } from '../row-tables.ts';

/** Whether the relay accepts a key, and why. `row` is there when it could be read. */
export interface KeyState {
  state: 'usable' | 'unknown' | 'invalid' | 'disabled' | 'expired' | 'kind';
  why: string;
  row?: KeyRow;
}

/**
 * The state in which the relay finds a key of a row of `keys`, and why.
 * @param nowMs epoch milliseconds
 */
export function keyState(raw: RawRow | undefined, nowMs: number): KeyState {
  if (raw === undefined) return { state: 'unknown', why: 'no row has the hash of this key' };
  const reading = readRow(KeyRow, raw);
  if ('problem' in reading) return { state: 'invalid', why: reading.problem };
  const { row } = reading;
  if (row.agent !== 'api') return { state: 'kind', why: `agent is ${row.agent}; only api may chat`, row };
  if (!row.enabled) return { state: 'disabled', why: 'enabled is false', row };
  if (row.expires_at !== undefined && row.expires_at <= nowMs) {
    return { state: 'expired', why: `it expired at ${isoTime(row.expires_at)}`, row };
  }
  return { state: 'usable', why: describeRights(row), row };
}

function describeRights(row: KeyRow): string {
  const rights = [
    row.models === undefined ? 'every model' : `models: ${row.models.join(', ') || 'none'}`,
    ...(row.official ? ['official mode'] : []),
    ...(row.expires_at === undefined ? [] : [`until ${isoTime(row.expires_at)}`]),
    ...(row.max_concurrency === undefined ? [] : [`${row.max_concurrency} at once`]),
    ...(row.rpm === undefined ? [] : [`${row.rpm} a minute`]),
  ];
  return rights.join('; ');
}
