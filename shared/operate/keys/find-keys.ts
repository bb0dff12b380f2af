/** View: keys, a page at a time: all, those of an account, or those that fit a hint or a hash. Never takes a whole key. */
import type { OperatorPorts } from '../operator-ports.ts';
import type { RowsWanted } from '../row-pages.ts';
import { keyViewsOf, type KeyView } from './list-keys.ts';

export interface KeyPage {
  keys: KeyView[];
  next: string | undefined;
}

export interface KeysWanted {
  /** A part of an account's name, of a hint or of a hash. Absent: all keys. */
  text?: string | undefined;
  after?: string | undefined;
  limit: number;
}

export async function findKeys(
  { clock, pages }: Pick<OperatorPorts, 'clock' | 'pages'>,
  { text, after, limit }: KeysWanted,
): Promise<KeyPage> {
  const nowMs = clock.now();
  if (text !== undefined && /^[0-9a-f]{64}$/i.test(text)) {
    const rows = await pages.rowsOf('keys', [text.toLowerCase()]);
    return { keys: keyViewsOf(rows, nowMs), next: undefined };
  }
  const where = text === undefined ? undefined : whereOf(text);
  const found = await pages.rows({ table: 'keys', after, where, limit });
  return { keys: keyViewsOf(found.rows, nowMs), next: found.next };
}

function whereOf(text: string): RowsWanted['where'] {
  if (text.startsWith('sk-')) return { attribute: 'hint', contains: text };
  if (/^[0-9a-f]{8,63}$/i.test(text)) return { attribute: 'hash', contains: text.toLowerCase() };
  return { attribute: 'account', contains: text };
}
