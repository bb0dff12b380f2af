/** Checks the price of each call: the one in force, or the previous one for 10 s after an edit. */
import { exactYuan } from '../../oracle/exact.ts';
import { ruleOfText, type ChargeText } from '../../oracle/price-list.ts';
import { rowsByCall } from './ledger.ts';
import {
  overlaps,
  type CallSeen,
  type Finding,
  type Observations,
  type PriceVersion,
} from './observations.ts';

const freshMs = 10_000;
/** Faults that delay publishing or reading an edit. */
const delays = new Set([
  'store-throttled',
  'store-down',
  'store-reply-lost',
  'store-slow',
  'kill-background',
  'freeze',
]);

const rate = (value: number | string | undefined): bigint => exactYuan(value ?? 0);
const samePrice = (one: ChargeText, other: ChargeText): boolean =>
  one.type === other.type &&
  rate(one.output) === rate(other.output) &&
  (one.type !== 'token-billing' || rate(one.input) === rate(other.input));

export function priceFindings(seen: Observations): Finding[] {
  const rows = rowsByCall(seen.tables.ledger);
  return seen.calls.flatMap((call) => {
    const price = call.requestId && rows.get(call.requestId)?.row['price'];
    if (typeof price !== 'string' || price === '') return [];
    const what = wrongPrice(call, ruleOfText(price), seen);
    return what === undefined ? [] : [{ rule: 'price', what: `call ${call.number}: ${price}: ${what}` }];
  });
}

function wrongPrice(call: CallSeen, rule: ChargeText, seen: Observations): string | undefined {
  const versions = seen.prices.filter(({ model }) => model === call.model);
  if (rule.type === 'non-billing') return versions.length === 0 ? undefined : 'the model has a price';
  const at = versions.findLastIndex((version) => samePrice(version, rule));
  if (at < 0) return 'no row ever had this price';
  if ((versions[at]?.writtenMs ?? 0) > call.endedMs) return 'the price was set after the call';
  const next = versions[at + 1];
  if (!next || call.startedMs <= dueMs(next, call, seen)) return undefined;
  return `replaced ${((call.startedMs - next.writtenMs) / 1000).toFixed(1)} s before the call`;
}

/** Until when a call may still use the previous price. */
function dueMs({ writtenMs }: PriceVersion, { startedMs }: CallSeen, { disturbances }: Observations): number {
  const delayed = disturbances.filter(
    (each) =>
      overlaps(each, writtenMs, startedMs) &&
      (delays.has(each.kind) || (each.kind === 'clock-skew' && each.target === 'config')),
  );
  return Math.max(writtenMs, ...delayed.map(({ untilMs }) => Math.min(untilMs, startedMs))) + freshMs;
}
