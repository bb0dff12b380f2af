/** What an account spent in some days, and would have spent after an edit. */
import { larger, type NanoYuan } from '../../billing/amount.ts';
import type { LedgerReader } from '../ledger-reader.ts';
import type { DayRange } from '../sum-reader.ts';
import { middleOf } from './bounds.ts';
import type { ModelEffect } from './edit-effects.ts';

export interface Spending {
  before: NanoYuan;
  after: NanoYuan;
}

export async function spendingOf(
  ledger: Pick<LedgerReader, 'daily'>,
  { account, days, rose }: { account: string; days: DayRange; rose: ReadonlyMap<string, ModelEffect> },
): Promise<Spending> {
  const spending = { before: 0n, after: 0n };
  for await (const page of ledger.daily(`account#${account}`, days))
    for (const each of page) {
      if (!('row' in each)) continue;
      const { key, figures } = each.row;
      const charged = figures.amounts.charged ?? 0n;
      const effect = rose.get(key.period.split('#')[2] ?? '');
      spending.before += charged;
      spending.after += effect ? charged + riseOf(effect, charged, figures.counts.calls ?? 0) : charged;
    }
  return spending;
}

/** The account's share of what the model brings in more: by charges, or by calls where there were none. */
function riseOf({ revenue, calls, charged: all }: ModelEffect, charged: NanoYuan, own: number): NanoYuan {
  const rise = larger(0n, middleOf(revenue.after) - middleOf(revenue.before));
  if (all > 0n) return (rise * charged) / all;
  return calls > 0 ? (rise * BigInt(own)) / BigInt(calls) : 0n;
}
