import { exactYuan, nano } from './exact.ts';

/** The credits of payments beside their own amount, recomputed only from docs/payments.md. */
export interface Step {
  pay: number;
  get: number;
}

/** The highest step that the payment reaches counts. */
export function bonusOf(steps: readonly Step[], paidNano: bigint): bigint {
  let bonus = 0n;
  let highest = 0n;
  for (const { pay, get } of steps) {
    const from = exactYuan(pay);
    if (nano(from) > paidNano || from <= highest) continue;
    highest = from;
    bonus = nano(exactYuan(get) - from);
  }
  return bonus;
}

/** The share of the bonus that a refund or dispute takes back: at most all of it, rounded half up to the billionth. */
export function bonusOfPart(bonus: bigint, taken: bigint, paid: bigint): bigint {
  const part = taken > paid ? paid : taken;
  const [whole, rest] = [(bonus * part) / paid, (bonus * part) % paid];
  return rest * 2n >= paid ? whole + 1n : whole;
}
