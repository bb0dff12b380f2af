/** Describes a key's state in words, by the same rules that the relay applies to requests. */
import { isoTime } from '../../wire/iso-time.ts';
import { KeyRow, refusedFor, shownHash } from '../../config/rows/key-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import type { RawRow } from '../row-tables.ts';

export { shownHash };

/** Whether the relay accepts a key, and why. `row` is present if it could be read. */
export interface KeyState {
  state: 'usable' | 'unknown' | 'invalid' | 'disabled' | 'expired' | 'kind';
  why: string;
  row?: KeyRow;
}

/**
 * The state of a key, and why.
 * @param raw the key's row of `keys`; undefined: it has none
 * @param nowMs epoch milliseconds
 */
export function keyState(raw: RawRow | undefined, nowMs: number): KeyState {
  if (raw === undefined) return { state: 'unknown', why: 'no row has the hash of this key' };
  const reading = readRow(KeyRow, raw);
  if ('problem' in reading) return { state: 'invalid', why: reading.problem };
  const { row } = reading;
  const state = refusedFor(row, nowMs) ?? 'usable';
  return { state, why: reasons[state](row), row };
}

const reasons: Record<NonNullable<ReturnType<typeof refusedFor>> | 'usable', (row: KeyRow) => string> = {
  kind: ({ agent }) => `agent is ${agent}; only api may chat`,
  disabled: () => 'enabled is false',
  expired: ({ expires_at: expiresAt = 0 }) => `it expired at ${isoTime(expiresAt)}`,
  usable: describeRights,
};

function describeRights(row: KeyRow): string {
  return [
    row.models === undefined ? 'every model' : `models: ${row.models.join(', ') || 'none'}`,
    ...(row.official ? ['official mode'] : []),
    ...(row.expires_at === undefined ? [] : [`until ${isoTime(row.expires_at)}`]),
    ...(row.max_concurrency === undefined ? [] : [`${row.max_concurrency} at once`]),
    ...(row.rpm === undefined ? [] : [`${row.rpm} a minute`]),
    ...(row.store === undefined ? [] : [row.store ? 'stores responses' : 'stores nothing']),
    ...(row.budget === undefined ? [] : [`at most ${row.budget.amount} yuan a ${row.budget.period}`]),
  ].join('; ');
}
