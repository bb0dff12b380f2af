/**
 * A key that a customer creates: its fields, and the check that it never has more rights than the key that creates it. A row is
 * looked at whole whenever it is written, so neither an edit nor a rotation carries a right that its maker has lost.
 */
import { parseYuan } from '../../billing/money.ts';
import { KeyRow, findKeyRefusal } from '../../config/rows/key-row.ts';
import { readRow, textOf } from '../../config/rows/read-row.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { isoTime } from '../../wire/iso-time.ts';
import type { ManagedKey } from '../../wire/public-api.ts';
import { refuse } from '../http/refusal.ts';

/** Attributes of a row as they are written; undefined: the row has none. */
export type KeyFields = Record<string, unknown>;

/** Converts the fields that a customer sends for a key to attributes of a row. */
export const fieldsOf = (row: KeyRow) => ({
  name: row.name,
  models: row.models,
  budget: row.budget,
  rpm: row.rpm,
  max_concurrency: row.max_concurrency,
  expires_at: row.expires_at === undefined ? undefined : isoTime(row.expires_at),
  store: row.store,
});

const nameLengthMax = 100;
/** The end of the year 9999, which ISO 8601 writes with four digits. */
const secondsMax = 253_402_300_799;
const yuanMax = 10n ** 18n;

/** The fields of a body. One that is null is as the key has it that asks. Throws InvalidRequest. */
export function readKeyFields(body: KeyFields, own: KeyRow, nowMs: number): KeyFields {
  const given: KeyFields = { ...fieldsOf(own), name: undefined };
  checkNames(body, Object.keys(given));
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [
      name,
      value === null ? given[name] : readField(name, value, nowMs),
    ]),
  );
}

function readField(name: string, value: unknown, nowMs: number): unknown {
  if (name === 'name') {
    const text = typeof value === 'string' ? value.trim() : '';
    if (text === '' || text.length > nameLengthMax || /\p{C}/u.test(text))
      throw refuseField('name', `name must have 1 to ${nameLengthMax} visible characters.`);
    return text;
  }
  if (name !== 'expires_at') return value;
  if (!Number.isSafeInteger(value) || Number(value) > secondsMax || Number(value) * 1000 <= nowMs)
    throw refuseField('expires_at', 'expires_at must be a time in the future, in whole Unix seconds.');
  return isoTime(Number(value) * 1000);
}

const exceedsWords = 'a key cannot have more rights than the key that you call with.';

/** A row that a customer may write. Throws InvalidRequest, or a Refusal that names the right that it may not give. */
export function readAllowedKey(own: KeyRow, row: KeyFields): KeyRow {
  const reading = readRow(KeyRow, row);
  if ('problem' in reading)
    throw refuseField(/^\w+/.exec(reading.problem)?.[0] ?? null, `${reading.problem}.`);
  const { row: made } = reading;
  const amount = made.budget && parseYuan(made.budget.amount);
  if (made.budget && (amount === undefined || amount > yuanMax))
    throw refuseField('budget', 'budget.amount must be yuan with at most 9 decimals, at most 1,000,000,000.');
  const right = Object.keys(exceeds).find((name) => exceeds[name]?.(own, made));
  if (right !== undefined) throw refuse('key_exceeds_own', `${right}: ${exceedsWords}`, { param: right });
  return made;
}

const isAbove = (made: number = Infinity, own: number = Infinity): boolean => made > own;
/** A key without `store` may store if the setting allows it. */
const storageRankOf = ({ store }: KeyRow): number => (store === undefined ? 1 : Number(store) * 2);

const exceeds: Readonly<Record<string, (own: KeyRow, made: KeyRow) => boolean>> = {
  models: (own, made) =>
    own.models !== undefined && !made.models?.every((name) => own.models?.includes(name)),
  budget: ({ budget: own }, { budget: made }) =>
    own !== undefined &&
    (made === undefined || mostOf(made).some((most, at) => most > (mostOf(own)[at] ?? 0n))),
  rpm: (own, made) => isAbove(made.rpm, own.rpm),
  max_concurrency: (own, made) => isAbove(made.max_concurrency, own.max_concurrency),
  expires_at: (own, made) => isAbove(made.expires_at, own.expires_at),
  store: (own, made) => storageRankOf(made) > storageRankOf(own),
  official: (own, made) => made.official && !own.official,
};

const daysMax = 31n;

/** The most that a budget lets a key spend in a day, and in a month. */
function mostOf({ amount, period }: NonNullable<KeyRow['budget']>): [day: bigint, month: bigint] {
  const yuan = parseYuan(amount) ?? 0n;
  return [yuan, period === 'day' ? yuan * daysMax : yuan];
}

/** The name of a key among those of its account: no part of the key itself. */
export const keyIdOf = (hash: string): string => hash.slice(0, 16);

/** @param raw a row of the table, which may be unreadable: the relay refuses its key */
export function describeKey(raw: unknown, own: KeyRow, nowMs: number): ManagedKey {
  const reading = readRow(KeyRow, raw);
  const hash = textOf(raw, 'hash');
  const row = 'row' in reading ? reading.row : undefined;
  const state = row ? (findKeyRefusal(row, nowMs) ?? 'usable') : 'disabled';
  const created = Date.parse(textOf(raw, '_created'));
  return {
    id: keyIdOf(hash),
    hint: row?.hint ?? '',
    name: row?.name ?? null,
    models: row?.models ?? null,
    budget: row?.budget ?? null,
    rpm: row?.rpm ?? null,
    max_concurrency: row?.max_concurrency ?? null,
    expires_at: row?.expires_at === undefined ? null : Math.floor(row.expires_at / 1000),
    store: row?.store ?? null,
    state: state === 'kind' ? 'disabled' : state,
    made_by: row?.made_by !== undefined && !row.manage ? 'customer' : 'operator',
    created_at: Number.isNaN(created) ? null : Math.floor(created / 1000),
    self: hash === own.hash,
  };
}

/** Throws InvalidRequest for a field of another name. */
export function checkNames(body: KeyFields, known: readonly string[]): void {
  const name = Object.keys(body).find((each) => !known.includes(each));
  if (name === undefined) return;
  throw new InvalidRequest(
    'unknown_parameter',
    name.slice(0, nameLengthMax),
    `Unknown field. Supported fields: ${known.join(', ')}.`,
  );
}

export const refuseField = (param: string | null, message: string): InvalidRequest =>
  new InvalidRequest('invalid_value', param, message);
