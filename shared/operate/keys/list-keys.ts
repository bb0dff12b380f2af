/** Views of keys: listed, found, and whether the relay accepts one, and why, by the same rules that it applies to requests. */
import { isAccountOff } from '../../config/rows/account-row.ts';
import { KeyRow, findKeyRefusal, maskHash } from '../../config/rows/key-row.ts';
import { readRow, textOf } from '../../config/rows/read-row.ts';
import { isSecretKey, keyHash, keyHint } from '../../wire/ids.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { compareCodeUnits, listTexts } from '../../wire/json.ts';
import type { OperatorPorts, RawRow, RowsWanted } from '../operator-ports.ts';
import { formatWrittenMoney, usageFailure } from '../plan.ts';

export interface KeyView extends Pick<KeyState, 'state' | 'why'> {
  /** The row as stored, with lists instead of sets. */
  row: RawRow;
}

export async function listKeys(
  { tables, clock }: OperatorPorts,
  { account }: { account?: string },
): Promise<KeyView[]> {
  const rows = await tables.scan('keys');
  const wanted = rows.filter((row) => account === undefined || row['account'] === account);
  return keyViewsOf(wanted, clock.now());
}

const sortText = (row: RawRow): string => `${textOf(row, 'account')} ${textOf(row, 'hint')}`;

/** Sorted by account, then hint. */
export const keyViewsOf = (rows: readonly RawRow[], nowMs: number): KeyView[] =>
  rows
    .toSorted((a, b) => compareCodeUnits(sortText(a), sortText(b)))
    .map((raw) => {
      const { state, why } = judgeKey(raw, nowMs);
      const attributes = Object.entries(raw);
      const plain = attributes.map(([name, value]) => [name, value instanceof Set ? [...value] : value]);
      return { state, why, row: Object.fromEntries(plain) as RawRow };
    });

interface KeysWanted {
  /** Part of an account's name, of a hint or of a hash, never a whole key. */
  text?: string | undefined;
  after?: string | undefined;
  limit: number;
}

export async function findKeys({ clock, pages }: OperatorPorts, { text, after, limit }: KeysWanted) {
  const nowMs = clock.now();
  if (text !== undefined && /^[0-9a-f]{64}$/i.test(text)) {
    const rows = await pages.rowsOf('keys', [text.toLowerCase()]);
    return { keys: keyViewsOf(rows, nowMs), next: undefined };
  }
  const where = text === undefined ? undefined : whereOf(text);
  const found = await pages.rows({ table: 'keys', after, where, limit });
  const { rows, next } = found;
  const shown = next === undefined || isHash(next);
  return {
    keys: keyViewsOf(rows, nowMs),
    next: shown ? next : rows.map((row) => textOf(row, 'hash')).findLast(isHash),
  };
}

/** The start of a page is part of an address. Somebody may have put a key there in place of its hash. */
const isHash = (text: string): boolean => maskHash(text) === text;

function whereOf(text: string): RowsWanted['where'] {
  if (text.startsWith('sk-')) return { attribute: 'hint', contains: text };
  if (/^[0-9a-f]{8,63}$/i.test(text)) return { attribute: 'hash', contains: text.toLowerCase() };
  return { attribute: 'account', contains: text };
}

export type FoundKey = Awaited<ReturnType<typeof findKey>>;

/**
 * Finds the one key of which an operator gives the hash, 4 or more leading characters of it, the hint, or the key itself.
 * Throws a Failure of the command line unless exactly one key matches.
 */
export async function findKey({ tables }: OperatorPorts, written: string) {
  const wanted = written.trim();
  const isHashPrefix = /^[0-9a-f]{4,64}$/i.test(wanted);
  if (!isHashPrefix && !wanted.startsWith('sk-'))
    throw usageFailure(
      'invalid key: use at least 4 characters of its hash, or its hint (sk-AbCd...wXyZ), from `key list`',
    );
  const fullHash = keyHash(wanted);
  const prefix = wanted.toLowerCase();
  const whole = prefix.length === 64 && isHashPrefix ? await tables.get('keys', prefix) : undefined;
  const found = (whole ? [whole] : await tables.scan('keys')).filter(
    (row) =>
      row['hint'] === wanted ||
      row['hash'] === fullHash ||
      (isHashPrefix && textOf(row, 'hash').startsWith(prefix)),
  );
  const [row] = found;
  if (row === undefined) throw usageFailure('no key with this hash or hint: see `key list`');
  if (found.length > 1)
    throw usageFailure(
      `${found.length} keys match: ${found.map(nameOfKey).join(', ')}. Use more characters of the hash`,
    );
  const of = (name: string): string => textOf(row, name);
  return { hash: of('hash'), hint: of('hint'), account: of('account'), name: nameOfKey(row), row };
}

function nameOfKey(row: RawRow): string {
  const hash = maskHash(textOf(row, 'hash')).slice(0, 12);
  return `${textOf(row, 'hint') || 'key'} (hash ${hash}, account ${textOf(row, 'account') || 'unreadable'})`;
}

/** Why the relay accepts or rejects a key. `row` is present if it could be read. */
interface KeyState {
  state: 'usable' | 'unknown' | 'invalid' | 'disabled' | 'expired' | 'kind';
  why: string;
  row?: KeyRow;
}

/** @param raw the key's row of `keys`; undefined: it has none */
export function judgeKey(raw: RawRow | undefined, nowMs: number): KeyState {
  if (raw === undefined) return { state: 'unknown', why: 'this key does not exist' };
  const reading = readRow(KeyRow, raw);
  if ('problem' in reading) return { state: 'invalid', why: reading.problem };
  const { row } = reading;
  const state = findKeyRefusal(row, nowMs) ?? 'usable';
  return { state, why: reasons[state](row), row };
}

const reasons: Record<NonNullable<ReturnType<typeof findKeyRefusal>> | 'usable', (row: KeyRow) => string> = {
  kind: ({ agent }) => `agent is ${agent}; only api keys can make calls`,
  disabled: () => 'it is disabled',
  expired: ({ expires_at: expiresAt = 0 }) => `it expired at ${isoTime(expiresAt)}`,
  usable: (row) =>
    listTexts(
      row.models === undefined ? 'every model' : `models: ${row.models.join(', ') || 'none'}`,
      row.official && 'official mode',
      row.manage && 'can create keys',
      row.expires_at !== undefined && `until ${isoTime(row.expires_at)}`,
      row.max_concurrency !== undefined && `${row.max_concurrency} concurrent`,
      row.rpm !== undefined && `${row.rpm} a minute`,
      row.store !== undefined && (row.store ? 'stores responses' : 'stores nothing'),
      row.budget && `budget ${formatWrittenMoney(row.budget.amount)} a ${row.budget.period}`,
    ).join('; '),
};

/** `name`: the key's in messages; undefined: the text cannot be a key. */
export type KeyCheck = Awaited<ReturnType<typeof checkKey>>;

export async function checkKey({ tables, clock }: OperatorPorts, written: string) {
  const secretKey = written.trim();
  if (secretKey === '') throw usageFailure('no key given, neither as argument nor on standard input');
  if (!isSecretKey(secretKey))
    return {
      state: 'malformed',
      why: 'a key starts with sk- and has up to 200 visible characters, without spaces',
    } as const;
  const { state, why, row } = judgeKey(await tables.get('keys', keyHash(secretKey)), clock.now());
  const isOff = state === 'usable' && row && isAccountOff(await tables.get('accounts', row.account));
  // A short text is not shown, because its hint would contain most of it.
  const hint = row?.hint || (secretKey.length >= 20 ? keyHint(secretKey) : 'this key');
  const name = row ? `${hint} of account ${row.account}` : hint;
  const off = {
    state: 'account_off',
    why: 'its customer is disabled',
    name,
  } as const;
  return isOff ? off : { state, why, name };
}
