/** What calls whose charges are known would have cost at another price. Pure. */
import type { NanoYuan } from '../../billing/amount.ts';
import type { DailyFigures } from '../../billing/daily/daily-figures.ts';
import { tierFor, type Price, type Rates, type TokenKind, type Tiers } from '../../billing/price.ts';
import { both, exactly, type Bounds } from './bounds.ts';
import { chargeBounds, kindsUsed, reachableTiers } from './charge-bounds.ts';
import { paidUsage, unfinishedCalls, type Usage } from './paid-usage.ts';

export interface PricesAround {
  before: Price;
  after: Price;
  /** The price was `before` on all of these days, so what was charged is what it comes to. */
  isKnown: boolean;
}

export interface RevenueAround {
  before: Bounds;
  after: Bounds;
}

/** Apart from the id of their rules. */
export const isSamePrice = (a: Price, b: Price): boolean => contentOf(a) === contentOf(b);

const contentOf = (price: Price): string =>
  JSON.stringify({ ...price, rule: 0 }, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );

export const isFree = (price: Price): boolean =>
  price.type === 'non-billing' ||
  (price.type === 'times-billing'
    ? price.perCall === 0n
    : price.tiers.every(({ rates }) => Object.values(rates).every((rate) => rate === 0n)));

export function revenueAround(
  { before, after, isKnown }: PricesAround,
  figures: DailyFigures,
): RevenueAround {
  const usage = paidUsage(figures);
  const charged = figures.amounts.charged ?? 0n;
  const known = isKnown ? exactly(charged) : chargeBounds(before, usage);
  if (isSamePrice(before, after)) return { before: known, after: known };
  const paidCalls =
    isKnown && before.type === 'times-billing' ? callsPaid(before.perCall, charged) : undefined;
  const computed = chargeBounds(after, usage, paidCalls);
  const isAnyLength = unfinishedCalls(figures) > 0;
  const factors = isKnown ? factorsOf({ before, after, usage, isAnyLength }) : undefined;
  if (!factors) return { before: known, after: computed };
  const expired = isAnyLength ? expiredAtMost(before, usage, charged) : 0n;
  const withExpired = { low: computed.low, high: computed.high + times(expired, factors.high) + 1n };
  return {
    before: known,
    after: both(expired > 0n ? withExpired : computed, scaled(charged, factors, figures.counts.calls ?? 0)),
  };
}

/** A price per call is charged in whole nano-yuan. */
function callsPaid(perCall: bigint, charged: NanoYuan): bigint | undefined {
  const one = (perCall + 500n) / 1_000n;
  return one > 0n && charged % one === 0n ? charged / one : undefined;
}

/** Calls that expired were charged their input, of which no count says how much it was. */
function expiredAtMost(before: Price, usage: Usage, charged: NanoYuan): NanoYuan {
  const { low } = chargeBounds(before, usage);
  return charged > low ? charged - low : 0n;
}

interface Fraction {
  over: bigint;
  under: bigint;
}
interface Factors {
  low: Fraction;
  high: Fraction;
}

const isLess = (a: Fraction, b: Fraction): boolean => a.over * b.under < b.over * a.under;

interface Compared {
  before: Price;
  after: Price;
  usage: Usage;
  /** Calls that are not in the usage may have been of any length. */
  isAnyLength: boolean;
}

/** Between which factors each product of each call changes. Undefined: one costs something that cost nothing before. */
function factorsOf({ before, after, usage, isAnyLength }: Compared): Factors | undefined {
  if (before.type !== 'token-billing' || after.type !== 'token-billing') return undefined;
  const kinds = [...new Set<TokenKind>(['input', ...kindsUsed(usage)])];
  const reached = (tiers: Tiers) => (isAnyLength ? tiers : reachableTiers(tiers, usage));
  const pairs = [before.tiers, after.tiers]
    .flatMap((tiers) => reached(tiers).map(({ above }) => above + 1))
    .map((length): [Rates, Rates] => [
      tierFor(before.tiers, length).rates,
      tierFor(after.tiers, length).rates,
    ]);
  const fractions = pairs.flatMap(([old, next]) =>
    kinds
      .map((kind) => ({ over: next[kind], under: old[kind] }))
      .filter(({ over, under }) => over > 0n || under > 0n),
  );
  const [first, ...others] = fractions;
  if (!first || fractions.some(({ under }) => under === 0n)) return undefined;
  return {
    low: others.reduce((least, each) => (isLess(each, least) ? each : least), first),
    high: others.reduce((most, each) => (isLess(most, each) ? each : most), first),
  };
}

const times = (amount: NanoYuan, { over, under }: Fraction): NanoYuan => (amount * over) / under;

/** Each call is rounded by half at most, before and after. */
function scaled(charged: NanoYuan, { low, high }: Factors, calls: number): Bounds {
  const slack = (factor: Fraction): bigint => BigInt(calls) * (1n + factor.over / factor.under) + 1n;
  const least = times(charged, low) - slack(low);
  return { low: least > 0n ? least : 0n, high: times(charged, high) + slack(high) };
}
