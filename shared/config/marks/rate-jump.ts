/** By how much a price jumps to another one, in words. */
import { formatDecimal } from '../../billing/amount.ts';
import {
  priceDecimals,
  ratePerMillion,
  tierFor,
  type PicoYuan,
  type Price,
  type Rates,
} from '../../billing/price.ts';

const jumpPercent = 30;

interface NamedRate {
  name: string;
  old: bigint;
  next: bigint;
}

/** Empty: it is no jump. */
export function jumpBetween(before: Price, after: Price): string {
  const wasFree = ratesAround(before, before).every(({ old }) => old === 0n);
  const isFree = ratesAround(after, after).every(({ old }) => old === 0n);
  if (isFree) return wasFree ? '' : 'becomes nothing: calls are free';
  if (wasFree) return 'begins: calls were free';
  if (before.type !== after.type) return `changes from ${before.type} to ${after.type}`;
  const [worst] = ratesAround(before, after)
    .filter(({ old, next }) => isJump(old, next))
    .toSorted((a, b) => percentOf(b) - percentOf(a));
  if (!worst) return '';
  const { name, old, next } = worst;
  const verb = next > old ? 'rises' : 'falls';
  const size = old === 0n ? `${verb} from nothing` : `${verb} by ${percentOf(worst)} %`;
  return `${size}: ${name} ${shownChange(before, old, next)}`;
}

const isJump = (old: bigint, next: bigint): boolean => sizeOf(next - old) * 100n > old * BigInt(jumpPercent);

const sizeOf = (value: bigint): bigint => (value < 0n ? -value : value);

const percentOf = ({ old, next }: NamedRate): number =>
  old === 0n ? Infinity : Number((sizeOf(next - old) * 100n) / old);

/** As people are shown prices everywhere: those of tokens for a million. */
const shownChange = ({ type }: Price, old: PicoYuan, next: PicoYuan): string =>
  type === 'times-billing'
    ? `${formatDecimal(old, priceDecimals)} to ${formatDecimal(next, priceDecimals)} yuan`
    : `${ratePerMillion(old)} to ${ratePerMillion(next)} yuan per million tokens`;

function ratesAround(before: Price, after: Price): NamedRate[] {
  if (before.type === 'times-billing' && after.type === 'times-billing')
    return [{ name: 'a call', old: before.perCall, next: after.perCall }];
  if (before.type !== 'token-billing' || after.type !== 'token-billing') return [];
  const lengths = [...before.tiers, ...after.tiers].map(({ above }) => above);
  return [...new Set(lengths)].flatMap((above) => {
    const old = tierFor(before.tiers, above + 1).rates;
    const next = tierFor(after.tiers, above + 1).rates;
    return Object.entries(attributes).map(([name, rate]) => ({
      name: above > 0 ? `${name} above ${above}` : name,
      old: old[rate],
      next: next[rate],
    }));
  });
}

const attributes: Readonly<Record<string, keyof Rates>> = {
  input: 'input',
  output: 'output',
  cached_input: 'cachedInput',
  cache_write: 'cacheWrite',
  cache_write_1h: 'cacheWrite1h',
};
