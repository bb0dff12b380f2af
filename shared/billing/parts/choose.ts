import { largestFirst } from '../amount.ts';
import type { QuotaItem } from '../quota-item.ts';
import { isRefusal, planReserve, type Payment, type ReserveNeed } from '../reservation.ts';
import { needOn, usesPart } from './shares.ts';

interface Option {
  item: QuotaItem;
  payment: Payment;
}

export interface Choice {
  /** In [0, 1): of the parts that are equally good any may be chosen, so that many calls do not meet on one. */
  chance: number;
  /** Others took what the call was to have, so it no longer competes for the last calls of a plan. */
  lastTry: boolean;
}

/** A part that has what a call needs; undefined: none has it alone. Plan slots go first, in their order. */
export function choosePart(
  need: ReserveNeed,
  images: readonly QuotaItem[],
  { chance, lastTry }: Choice,
): QuotaItem | undefined {
  const options = images.flatMap((item): Option[] => {
    if (!usesPart(need, item)) return [];
    const payment = planReserve(needOn(need, item), item);
    return isRefusal(payment) ? [] : [{ item, payment }];
  });
  const paid = options.filter(({ payment }) => !payment.slot && payment.limitedTo === undefined);
  if (lastTry && paid.length > 0) return anyOf(paid, chance);
  for (const { key } of need.slots) {
    const onSlot = options.filter(({ payment }) => payment.slot?.key === key);
    if (onSlot.length > 0) return anyOf(onSlot, chance);
  }
  const whole = options.filter(({ payment }) => payment.limitedTo === undefined);
  return whole.length > 0 ? anyOf(whole, chance) : richest(options);
}

const anyOf = (options: Option[], chance: number): QuotaItem | undefined =>
  options[Math.floor(chance * options.length)]?.item;

const richest = (options: Option[]): QuotaItem | undefined =>
  options.toSorted((a, b) => largestFirst(a.item.available, b.item.available))[0]?.item;
