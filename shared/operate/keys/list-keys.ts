/** View: keys, each with its state. */
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';
import { keyState, type KeyState } from './key-state.ts';

export interface KeyView extends Pick<KeyState, 'state' | 'why'> {
  /** The row as stored, with lists instead of sets. */
  row: RawRow;
}

/** Sorted by account, then hint. */
export async function listKeys(
  { tables, clock }: OperatorPorts,
  { account }: { account?: string },
): Promise<KeyView[]> {
  const rows = await tables.scan('keys');
  const wanted = rows.filter((row) => account === undefined || row['account'] === account);
  return keyViewsOf(wanted, clock.now());
}

/** Sorted by account, then hint. */
export const keyViewsOf = (rows: readonly RawRow[], nowMs: number): KeyView[] =>
  rows.toSorted((a, b) => compareCodeUnits(sortText(a), sortText(b))).map((row) => keyView(row, nowMs));

function keyView(raw: RawRow, nowMs: number): KeyView {
  const { state, why } = keyState(raw, nowMs);
  const attributes = Object.entries(raw).map(([name, value]) => [
    name,
    value instanceof Set ? [...value] : value,
  ]);
  return { state, why, row: Object.fromEntries(attributes) as RawRow };
}

const sortText = ({ account, hint }: RawRow): string =>
  [account, hint].map((value) => (typeof value === 'string' ? value : '')).join(' ');
