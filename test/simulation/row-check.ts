import type { CloseRow } from '../../shared/billing/ledger-row.ts';
import { costOf, ruleOfText } from '../oracle/price-list.ts';
import { hold } from './watch.ts';

/** A row can be computed again from itself. */
export function checkRow(row: CloseRow): void {
  if (row.kind !== 'settled') return;
  const { id, charge, plan_slot: slot, official, cost } = row;
  const rule = ruleOfText(row.price);
  const sum = costOf(rule, {
    input: row.prompt_tokens ?? 0,
    output: row.completion_tokens ?? 0,
    cached: row.cached_tokens ?? 0,
    written: row.cache_write_tokens ?? 0,
    writtenForHour: row.cache_write_1h_tokens ?? 0,
  });
  // Whether a price per call was due is not in the row.
  const fits = (amount: bigint | undefined): boolean =>
    amount === sum || (rule.type === 'times-billing' && amount === 0n);
  const wanted = slot !== undefined || official ? charge === 0n && (!official || fits(cost)) : fits(charge);
  hold(wanted, `${id} is charged ${charge}, its row says ${sum} by ${row.price}`);
}
