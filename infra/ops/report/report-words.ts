/** Figures as a report writes them: rounded to what a reader compares. */
import { divideHalfUp, type NanoYuan } from '../../../shared/billing/amount.ts';

/** 12345678 becomes `12,345,678`. */
export const grouped = (count: number | bigint): string =>
  String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ',');

/** Two decimals; of less than a cent four, and of less than that what there is. */
export function yuanText(amount: NanoYuan): string {
  const size = amount < 0n ? -amount : amount;
  const decimals = size === 0n || size >= 10_000_000n ? 2 : size >= 100_000n ? 4 : 9;
  const digits = divideHalfUp(size, 10n ** BigInt(9 - decimals))
    .toString()
    .padStart(decimals + 1, '0');
  return `${amount < 0n ? '-' : ''}${grouped(BigInt(digits.slice(0, -decimals)))}.${digits.slice(-decimals)}`;
}

export const yuanOrNone = (amount: NanoYuan | undefined): string =>
  amount === undefined ? '-' : yuanText(amount);

export const percent = (part: number, whole: number): string =>
  whole === 0 ? '-' : `${((100 * part) / whole).toFixed(1)} %`;

/** Bounds of buckets; the last one has none. */
export function seconds(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return '-';
  return milliseconds === Infinity ? 'over 64 s' : `${milliseconds / 1000} s`;
}

export function lastsFor(days: number): string {
  if (days <= 0) return 'empty';
  return days < 1 ? 'less than a day' : `${days.toFixed(1)} days`;
}

/** `12 % more`. Undefined: there is nothing to compare with. */
export function change(now: bigint | number, before: bigint | number): string | undefined {
  if (Number(before) <= 0) return undefined;
  const share = Number(now) / Number(before) - 1;
  const size = Math.abs(100 * share);
  if (size < 0.5) return 'as before';
  return `${size.toFixed(0)} % ${share > 0 ? 'more' : 'less'}`;
}
