import type { CloseRow } from '../../shared/billing/ledger-row.ts';
import { costOf, ruleOfText } from '../oracle/price-list.ts';
import { hold } from './watch.ts';

/** Recomputes a row from its own fields. */
export function checkRow(row: CloseRow): void {
  const { id, kind, charge, plan_slot: slot, official, cost, search_price: search = 0n } = row;
  hold(kind !== 'released' || official || charge === search, `${id} is released, and charged ${charge}`);
  if (kind !== 'settled') return;
  const rule = ruleOfText(row.price);
  const sum = costOf(rule, {
    input: row.prompt_tokens ?? 0,
    output: row.completion_tokens ?? 0,
    cached: row.cached_tokens ?? 0,
    written: row.cache_write_tokens ?? 0,
    writtenForHour: row.cache_write_1h_tokens ?? 0,
  });
  // The row does not record whether a price per call applied.
  const fits = (amount: bigint | undefined): boolean =>
    amount === sum + search || (rule.type === 'times-billing' && amount === search);
  const isPlan = slot !== undefined && !official;
  const wanted = official ? charge === 0n && fits(cost) : isPlan ? charge === search : fits(charge);
  hold(wanted, `${id} is charged ${charge}, its row says ${sum} by ${row.price}`);
}
