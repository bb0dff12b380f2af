/** Rebuilds an account's item from its ledger rows, and compares an item with it. Reads nothing itself. */
import type { NanoYuan } from '../money.ts';
import { createQuotaItem, sumReserved, type OpenEntry, type QuotaItem } from '../quota-item.ts';
import { findImbalances, type WholeAccount } from '../shards.ts';
import { countersMax } from '../shares.ts';
import type { LedgerSums } from './account-audit.ts';

interface Evidence {
  rows: LedgerSums;
  /** Calls without a row. The sweeper or a repair closes them. */
  open: ReadonlyMap<string, OpenEntry>;
  /** Charges of the balance that no row explains: a row was lost, but its charge must stay. */
  unexplained: { charged: NanoYuan; metered: NanoYuan };
  last: QuotaItem['last'];
}

export function rebuildAccount(
  account: string,
  { rows: { all }, open, unexplained, last }: Evidence,
): QuotaItem {
  const spent = all.charged + unexplained.charged;
  const metered = all.metered + unexplained.metered;
  const item: QuotaItem = { ...createQuotaItem(account), open: new Map(open), settled: all.closes, last };
  const slots = [
    ...all.slots,
    ...[...open.values()].flatMap(({ slot }) => (slot ? [[slot, 1] as const] : [])),
  ];
  const plan = new Map<string, number>();
  for (const [slot, calls] of selectNewest(slots)) plan.set(slot, (plan.get(slot) ?? 0) + calls);
  const { granted } = all;
  const available = granted + metered - spent - sumReserved(item);
  const counters = all.isSpread ? countersMax : undefined;
  return { ...item, granted, spent, available, ...(metered !== 0n && { metered }), counters, plan };
}

/** Only the latest period of each plan item counts: `<item>@<first day>`. */
function selectNewest(slots: readonly (readonly [slot: string, calls: number])[]) {
  const latest = new Map<string, string>();
  for (const [slot] of slots) {
    const [item = '', day = ''] = slot.split('@');
    if (day > (latest.get(item) ?? '')) latest.set(item, day);
  }
  return slots.filter(([slot]) => latest.get(slot.split('@')[0] ?? '') === slot.split('@')[1]);
}

export const matchesRebuilt = (item: WholeAccount, wanted: QuotaItem, { all }: LedgerSums): boolean =>
  item.granted === wanted.granted &&
  item.spent === wanted.spent &&
  (item.metered ?? 0n) === (wanted.metered ?? 0n) &&
  item.moved === 0n &&
  findImbalances(item.shards ?? [item]).length === 0 &&
  (wanted.counters === undefined || (item.shards?.[0] ?? item).counters !== undefined) &&
  [...item.plan].every(([slot, calls]) => calls === (all.slots.get(slot) ?? 0)) &&
  [...wanted.plan].every(([slot, calls]) => calls === item.plan.get(slot));
