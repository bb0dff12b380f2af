/** Amounts between a smallest and a largest, in nano-yuan. Pure. */
import { larger, smaller, type NanoYuan } from '../../billing/amount.ts';

export interface Bounds {
  low: NanoYuan;
  high: NanoYuan;
}

export const exactly = (amount: NanoYuan): Bounds => ({ low: amount, high: amount });
export const nothing = exactly(0n);

export const plus = (a: Bounds, b: Bounds): Bounds => ({ low: a.low + b.low, high: a.high + b.high });
export const minus = (a: Bounds, b: Bounds): Bounds => ({ low: a.low - b.high, high: a.high - b.low });

/** What both allow; the first where they exclude each other. */
export function both(a: Bounds, b: Bounds): Bounds {
  const met = { low: larger(a.low, b.low), high: smaller(a.high, b.high) };
  return met.low <= met.high ? met : a;
}

/** One of these, and nobody knows which. Must not be empty. */
export const oneOf = (all: readonly Bounds[]): Bounds => ({
  low: all.map(({ low }) => low).reduce(smaller),
  high: all.map(({ high }) => high).reduce(larger),
});

export const middleOf = ({ low, high }: Bounds): NanoYuan => (low + high) / 2n;

export const isSameAs = (a: Bounds, b: Bounds): boolean => a.low === b.low && a.high === b.high;

/** How far the truth may be from the middle, in percent of it, rounded up to hundredths. 0: exact; undefined: the middle is 0. */
export function withinPercent({ low, high }: Bounds): number | undefined {
  if (low === high) return 0;
  const middle = low + high;
  if (middle === 0n) return undefined;
  const size = middle < 0n ? -middle : middle;
  return Number(((high - low) * 10_000n + size - 1n) / size) / 100;
}

/** `exact`, or by how much the worst of them may be wrong. */
export function certaintyOf(...all: Bounds[]): string {
  const within = all.map(withinPercent);
  if (within.every((percent) => percent === 0)) return 'exact';
  const [worst] = within.toSorted((a, b) => (b ?? Infinity) - (a ?? Infinity));
  return worst === undefined ? 'unknown' : `within ${worst} %`;
}
