import { isoTime } from '../wire/iso-time.ts';
import { isTagName, requestTimeMs } from '../wire/ids.ts';
import { type NanoYuan, formatYuan, parsePrice } from './price.ts';
import type { CloseRecord, OpenEntry, AccountShard, QuotaItem, CloseWrite } from './quota-item.ts';
import { firstCounter } from './shares.ts';

/**
 * A row of the table `ledger`: one for each closed reservation and one for each applied grant. Attributes are
 * named as in the table. Amounts are nano-yuan here and exact decimal yuan in the table.
 */
export type LedgerRow = CloseRow | GrantLedgerRow;

/**
 * The outcome of one reservation, with its price, so that the charge can be recomputed. The cache counts are
 * parts of `prompt_tokens`; absent is zero.
 */
export interface CloseRow extends Omit<CloseRecord, 'at'> {
  account: string;
  /** Time of the close: ISO 8601, to the second. */
  at: string;
  /** The model that answered, or was tried last. */
  model: string;
  /** First 12 hex digits of the key's hash. */
  key: string;
  reserved: NanoYuan;
  /** Present when the charged counts are the relay's estimate for input, output or both. */
  estimated?: true | undefined;
  price: string;
  /** The tariff of the reservation, in the format of `formatTariff`. Absent: the same as `price`, or an earlier version reserved. */
  tariff?: string | undefined;
  /** The plan slot that counts the call; undefined: none does. */
  plan_slot?: string | undefined;
  /** The period of the key's budget that the call was held in. */
  budget?: string | undefined;
  official?: true | undefined;
  /** No balance paid: the account was metered. */
  metered?: true | undefined;
  /** Of a call that drew a counter: which of the account's partitions of the ledger has the row. */
  bucket?: number | undefined;
}

/** An applied grant. The existence of this row prevents a second application. */
export interface GrantLedgerRow {
  account: string;
  /** `grant#<grant_id>`: sorts after every request id. */
  id: string;
  at: string;
  kind: 'grant';
  amount: NanoYuan;
  reason: string;
}

/** Whom calls are for, named as log and ledger name it: kept with each call, and what rows and lines are selected by. */
export type Attribution = Pick<CloseRecord, 'end_user' | 'tags'>;

/** Grants are for nobody. */
export function isAttributedTo(row: LedgerRow, { end_user, tags = {} }: Attribution): boolean {
  const wanted = Object.entries(tags);
  if (end_user === undefined && wanted.length === 0) return true;
  if (row.kind === 'grant' || (end_user !== undefined && row.end_user !== end_user)) return false;
  return wanted.every(([name, value]) => row.tags?.[name] === value);
}

/** By what calls are summed beside the model: `end_user`, or `tag:` and a tag's name. */
export type AttributedBy = 'end_user' | `tag:${string}`;

const tagPrefix = 'tag:';

export const isAttributedBy = (written: string): written is AttributedBy =>
  written === 'end_user' || (written.startsWith(tagPrefix) && isTagName(written.slice(tagPrefix.length)));

/** Undefined: the client named none. */
export const findAttributedName = (
  { end_user, tags = {} }: CloseRow,
  by: AttributedBy,
): string | undefined => {
  const name = by.slice(tagPrefix.length);
  return by === 'end_user' ? end_user : Object.hasOwn(tags, name) ? tags[name] : undefined;
};

/** As clients write them, in the order of their names: the table keeps none. */
export const formatTags = (tags: CloseRow['tags'] = {}): string =>
  Object.entries(tags)
    .map((pair) => pair.join('='))
    .toSorted()
    .join(',');

/**
 * Rows of calls that drew a counter are spread over so many partitions of the ledger: a partition writes 1,000 units a second,
 * and a row takes two.
 */
export const ledgerBuckets = 8;

/** Ids end in random characters. Undefined: the row is where the account's others are. */
export const bucketOf = (id: string, part = 0): number | undefined =>
  part >= firstCounter ? id.charCodeAt(id.length - 1) % ledgerBuckets : undefined;

/** The partition of a row. Accounts named like that are refused. */
export const formatLedgerPartition = ({
  account,
  bucket,
}: {
  account: string;
  bucket?: number | undefined;
}): string => (bucket === undefined ? account : `${account}#${bucket}`);

/** Ids of late charges: `late#<request id>`. They sort after every request id. */
export const latePrefix = 'late#';

/** Formats Unix seconds for the ledger: `2026-11-21T09:43:00Z`. */
export const formatLedgerTime = (unixSeconds: number): string => isoTime(unixSeconds * 1000);

/**
 * The ledger row of the reservation that one write to an account's item closed; undefined: it closed none.
 * Throws an Error if the two images cannot be from one write.
 */
export function findCloseRow(
  before: QuotaItem | undefined,
  after: QuotaItem | undefined,
): CloseRow | undefined {
  if (!before || !after) return undefined;
  const closed = [...before.open].filter(([id]) => !after.open.has(id));
  const [only, ...others] = closed;
  if (!only) return undefined;
  const [id, entry] = only;
  if (others.length > 0 || after.last?.id !== id) throw new Error('a close without its close record');
  return closeRow(after, entry, after.last);
}

/** The row of a charge that came after its reservation expired, whose own row has what that charged, for a search too. */
export function buildLateRow(
  { account, shard, entry, closeRecord }: Pick<CloseWrite, 'account' | 'shard' | 'entry' | 'closeRecord'>,
  difference: NanoYuan,
): CloseRow {
  const row = closeRow({ account, shard }, { ...entry, amount: 0n }, closeRecord);
  const search_price = (closeRecord.search_price ?? 0n) - (entry.searchPrice ?? 0n) || undefined;
  return { ...row, id: latePrefix + closeRecord.id, charge: difference, search_price };
}

function closeRow({ account, shard }: AccountShard, entry: OpenEntry, closeRecord: CloseRecord): CloseRow {
  const { kind, at, estimated, channel, model = entry.model, price = entry.price } = closeRecord;
  // What a free model answers releases the plan's call.
  const isReleased = kind === 'released' || (kind === 'settled' && isFree(price));
  return {
    ...closeRecord,
    account,
    at: formatLedgerTime(at),
    model,
    key: entry.key,
    reserved: entry.amount,
    estimated: estimated === true ? true : undefined,
    price,
    tariff: entry.tariff === price ? undefined : entry.tariff,
    plan_slot: entry.slot !== '' && !isReleased ? entry.slot : undefined,
    budget: entry.budget,
    official: entry.official ? true : undefined,
    metered: entry.metered ? true : undefined,
    bucket: bucketOf(closeRecord.id, shard),
    upstream_model: channel && (closeRecord.upstream_model ?? model),
  };
}

const isFree = (price: string): boolean => parsePrice(price)?.type === 'non-billing';

/**
 * The time that rows are sorted by, in epoch milliseconds: the start of the call, read from its id; for a
 * grant, `at`.
 */
export const findLedgerTimeMs = (row: Pick<LedgerRow, 'id' | 'at'>): number =>
  requestTimeMs(row.id) ?? Date.parse(row.at);

/** A top-up to apply. */
export interface Grant {
  account: string;
  grant_id: string;
  /** Negative: a correction. */
  amount: NanoYuan;
  reason?: string | undefined;
}

/** Written with a grant, and removed when it is applied: the index `unapplied` has the rows with it. */
export const unappliedMark = { _unapplied: 'yes' } as const;

/** A row of `grants`. `amount` is the text that was written. */
export interface WrittenGrant {
  account: string;
  grantId: string;
  amount: string;
  applied: string | undefined;
  problem: string | undefined;
  /** Shown to the customer. */
  reason?: string | undefined;
}

export const formatGrantLedgerId = (grantId: string): string => `grant#${grantId}`;

/**
 * Builds the ledger row of an applied grant. The existence of this row marks the grant as applied.
 * `at`: in the format of `formatLedgerTime`.
 */
export const buildGrantLedgerRow = (
  { account, grant_id, amount, reason }: Grant,
  at: string,
): GrantLedgerRow => ({
  account,
  id: formatGrantLedgerId(grant_id),
  at,
  kind: 'grant',
  amount,
  reason: reason ?? '',
});

/** The problem of a grant whose amount was changed after it was applied; undefined: it was not changed. */
export const explainChangedGrant = (amount: NanoYuan, applied: NanoYuan): string | undefined =>
  amount === applied
    ? undefined
    : `amount: found ${formatYuan(amount)}, expected ${formatYuan(applied)}, which was applied; grant the difference in a row of its own`;

/** Ledger ids of grants begin with this prefix, which sorts after all request ids. */
export const grantPrefix = formatGrantLedgerId('');

/** What is spent and held of a budget, and how many running calls hold some. */
export interface BudgetUse {
  used: NanoYuan;
  running: number;
}

/**
 * What a closed call changes in its key's budget, which held the reserved amount. A late charge comes after a close
 * that gave the held amount free.
 */
export const budgetUseOf = ({ id, charge, reserved }: CloseRow): BudgetUse => ({
  used: charge - reserved,
  running: id.startsWith(latePrefix) ? 0 : -1,
});
