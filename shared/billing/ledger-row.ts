/**
 * Rows of the table `ledger`, the permanent record of charges and grants, and how they follow from writes to account items. The
 * function `ledger` builds them from the table stream.
 */
import { isoTime } from '../wire/iso-time.ts';
import { isTagName, requestTimeMs } from '../wire/ids.ts';
import { parsePrice } from './price.ts';
import { type NanoYuan, formatYuan } from './money.ts';
import type { CloseRecord, OpenEntry, AccountShard, QuotaItem, CloseWrite } from './quota-item.ts';
import { firstCounter } from './shares.ts';

/** Attributes are named as in the table. Amounts are nano-yuan here, and exact decimal yuan in the table. */
export type LedgerRow = CloseRow | GrantLedgerRow;

/** The outcome of one reservation, with its price, so that an audit can recompute the charge. */
export interface CloseRow extends Omit<CloseRecord, 'at'> {
  account: string;
  /** Time of the close: ISO 8601, to the second. */
  at: string;
  /** The model that answered, or was tried last. */
  model: string;
  /** First 12 hex digits of the key's hash. */
  key: string;
  reserved: NanoYuan;
  estimated?: true | undefined;
  price: string;
  /** In the format of `formatTariff`, unless it is the same as `price`, or an earlier version reserved. */
  tariff?: string | undefined;
  plan_slot?: string | undefined;
  /** The budgets from which the call reserved: see `listBudgetCounters`. */
  budget?: string | undefined;
  official?: true | undefined;
  metered?: true | undefined;
  /** Calls of metered accounts have rows in several partitions of the ledger; this is the row's. */
  bucket?: number | undefined;
}

/** While this row exists, the grant cannot be applied a second time. */
export interface GrantLedgerRow {
  account: string;
  /** `grant#<grant_id>`: sorts after every request id. */
  id: string;
  at: string;
  kind: 'grant';
  amount: NanoYuan;
  reason: string;
}

/** Whom a call is for. Rows and log lines are selected by it, and use the same names. */
export type Attribution = Pick<CloseRecord, 'end_user' | 'tags'>;

export function isAttributedTo(row: LedgerRow, { end_user, tags = {} }: Attribution): boolean {
  const wanted = Object.entries(tags);
  if (end_user === undefined && wanted.length === 0) return true;
  if (row.kind === 'grant' || (end_user !== undefined && row.end_user !== end_user)) return false;
  return wanted.every(([name, value]) => row.tags?.[name] === value);
}

export type AttributedBy = 'end_user' | `tag:${string}`;

const tagPrefix = 'tag:';

export const isAttributedBy = (written: string): written is AttributedBy =>
  written === 'end_user' || (written.startsWith(tagPrefix) && isTagName(written.slice(tagPrefix.length)));

export const findAttributedName = (
  { end_user, tags = {} }: Attribution,
  by: AttributedBy,
): string | undefined => {
  const name = by.slice(tagPrefix.length);
  return by === 'end_user' ? end_user : Object.hasOwn(tags, name) ? tags[name] : undefined;
};

/** Sorts tags by name, because the table does not keep their order. */
export const formatTags = (tags: CloseRow['tags'] = {}): string =>
  Object.entries(tags)
    .map((pair) => pair.join('='))
    .toSorted()
    .join(',');

/** Partitions for the rows of a metered account's calls: one writes 1,000 units a second, and a row takes two. */
export const ledgerBuckets = 8;

/** Ids end in random characters. */
export const bucketOf = (id: string, part = 0): number | undefined =>
  part >= firstCounter ? id.charCodeAt(id.length - 1) % ledgerBuckets : undefined;

/** Names of accounts cannot end like this. */
export const formatLedgerPartition = ({
  account,
  bucket,
}: {
  account: string;
  bucket?: number | undefined;
}): string => (bucket === undefined ? account : `${account}#${bucket}`);

/** Ids of late charges: `late#<request id>`. They sort after every request id. */
export const latePrefix = 'late#';

export const formatLedgerTime = (unixSeconds: number): string => isoTime(unixSeconds * 1000);

/** Finds the reservation that one write to an account's item closed. Throws if the images cannot be from one write. */
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
  return buildCloseRow(after, entry, after.last);
}

/** Builds the row of a charge that came after its reservation expired. The expiry has a row of its own, so this one has the difference. */
export function buildLateRow(
  { account, shard, entry, closeRecord }: Pick<CloseWrite, 'account' | 'shard' | 'entry' | 'closeRecord'>,
  difference: NanoYuan,
): CloseRow {
  const row = buildCloseRow({ account, shard }, { ...entry, amount: 0n }, closeRecord);
  const search_price = (closeRecord.search_price ?? 0n) - (entry.searchPrice ?? 0n) || undefined;
  return { ...row, id: latePrefix + closeRecord.id, charge: difference, search_price };
}

function buildCloseRow(
  { account, shard }: AccountShard,
  entry: OpenEntry,
  closeRecord: CloseRecord,
): CloseRow {
  const { kind, at, estimated, channel, model = entry.model, price = entry.price } = closeRecord;
  // An answer of a free model does not use up a call of the plan.
  const isReleased = kind === 'released' || (kind === 'settled' && parsePrice(price)?.type === 'non-billing');
  return {
    ...closeRecord,
    account,
    at: formatLedgerTime(at),
    model,
    key: entry.key,
    reserved: entry.amount,
    estimated: estimated || undefined,
    price,
    tariff: entry.tariff === price ? undefined : entry.tariff,
    plan_slot: entry.slot !== '' && !isReleased ? entry.slot : undefined,
    budget: entry.budget,
    official: entry.official || undefined,
    metered: entry.metered || undefined,
    bucket: bucketOf(closeRecord.id, shard),
    upstream_model: channel && (closeRecord.upstream_model ?? model),
  };
}

/** Rows are sorted by the start of the call, which its id contains, or by the time of the grant. */
export const findLedgerTimeMs = (row: Pick<LedgerRow, 'id' | 'at'>): number =>
  requestTimeMs(row.id) ?? Date.parse(row.at);

export interface Grant {
  account: string;
  grant_id: string;
  /** Negative for a correction. */
  amount: NanoYuan;
  reason?: string | undefined;
}

/** Written with a grant and removed when it is applied. The index `unapplied` lists the rows that have it. */
export const unappliedMark = { _unapplied: 'yes' } as const;

/** A row of `grants`, with the amount as its author wrote it. */
export interface WrittenGrant {
  account: string;
  grantId: string;
  amount: string;
  applied: string | undefined;
  problem: string | undefined;
  warning?: string | undefined;
  /** Shown to the customer. */
  reason?: string | undefined;
}

export const formatGrantLedgerId = (grantId: string): string => `grant#${grantId}`;

/** @param at in the format of `formatLedgerTime` */
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

export const explainChangedGrant = (amount: NanoYuan, applied: NanoYuan): string | undefined =>
  amount === applied
    ? undefined
    : `amount: found ${formatYuan(amount)}, expected ${formatYuan(applied)}, which was applied; grant the difference in a row of its own`;

export const grantPrefix = formatGrantLedgerId('');

/** The counter of a budget in one period. `key` is the first 12 hex digits of the key's hash, or 16 digits of the tag's hash. */
export interface BudgetName {
  key: string;
  /** As in `BudgetPeriod`. */
  period: string;
}

/** Reads `2026-11 0a1b2c3d4e5f6789@2026-11-21`: a period alone is that of the key's budget, `counter@period` names the budget of a tag. */
export const listBudgetCounters = ({ key, budget = '' }: Pick<CloseRow, 'key' | 'budget'>): BudgetName[] =>
  budget.split(' ').flatMap((name) => {
    const [period = '', counter = key] = name.split('@').toReversed();
    return period === '' ? [] : [{ key: counter, period }];
  });

export const formatBudgetCounters = (ofKey: string, counters: readonly BudgetName[]): string | undefined =>
  counters.map(({ key, period }) => (key === ofKey ? period : `${key}@${period}`)).join(' ') || undefined;

/** `used` is spent or reserved; `running` counts the calls that reserve some of it. */
export interface BudgetUse {
  used: NanoYuan;
  running: number;
}

/** A close replaces the reserved amount by the charge. Before a late charge, the expiry already did. */
export const budgetUseOf = ({ id, charge, reserved }: CloseRow): BudgetUse => ({
  used: charge - reserved,
  running: id.startsWith(latePrefix) ? 0 : -1,
});
