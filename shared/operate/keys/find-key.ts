/** Finds the one key that matches an operator's text. */
import { textOf } from '../../config/rows/read-row.ts';
import { keyHash } from '../../tables/key-hash.ts';
import { usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { RawRow } from '../row-tables.ts';
import { shownHash } from './key-state.ts';

export interface FoundKey {
  hash: string;
  /** The key's name in messages. */
  name: string;
  /** Of the row; empty if it is no text. */
  hint: string;
  account: string;
  row: RawRow;
}

/**
 * Finds a key by its hash, by 4 or more leading characters of the hash, by its hint, or by the key itself.
 * Throws a Failure of the command line unless exactly one key matches.
 */
export async function findKey({ tables }: OperatorPorts, written: string): Promise<FoundKey> {
  const wanted = written.trim();
  const isHashPrefix = /^[0-9a-f]{4,64}$/i.test(wanted);
  if (!isHashPrefix && !wanted.startsWith('sk-')) {
    throw usageFailure(
      'wanted 4 or more characters of the hash, or the hint (sk-AbCd...wXyZ): see `key list`',
    );
  }
  const fullHash = keyHash(wanted);
  const isWhole = /^[0-9a-f]{64}$/i.test(wanted);
  const whole = isWhole ? await tables.get('keys', wanted.toLowerCase()) : undefined;
  const rows = whole ? [whole] : await tables.scan('keys');
  const found = rows.filter(
    (row) =>
      row['hint'] === wanted ||
      row['hash'] === fullHash ||
      (isHashPrefix && textOf(row, 'hash').startsWith(wanted.toLowerCase())),
  );
  const [row] = found;
  if (row === undefined) throw usageFailure('no key has this hash or hint: see `key list`');
  if (found.length > 1) {
    const names = found.map((each) => nameOf(each)).join(', ');
    throw usageFailure(`${found.length} keys fit: ${names}. Give more of the hash.`);
  }
  const [hash, hint, account] = ['hash', 'hint', 'account'].map((name) => textOf(row, name));
  return { hash: hash ?? '', hint: hint ?? '', account: account ?? '', name: nameOf(row), row };
}

function nameOf(row: RawRow): string {
  const hash = shownHash(textOf(row, 'hash')).slice(0, 12);
  return `${textOf(row, 'hint') || 'key'} (hash ${hash}, account ${textOf(row, 'account') || 'unreadable'})`;
}
