/** Numbers and amounts as pages show them: short to read, exact in the title. */
import { formatYuan, type NanoYuan } from '../../../../shared/billing/amount.ts';
import { html, type Markup } from './markup.ts';

/** 12345678 -> `12,345,678`. */
export const grouped = (count: number | bigint): string =>
  String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ',');

/** `1 call`, `1,234 calls`. */
export const counted = (count: number, name: string): string =>
  `${grouped(count)} ${count === 1 ? name : `${name}s`}`;

const units = ['', 'K', 'M', 'G', 'T'];

/** 12345678 -> `12.3M`; below 10,000 as it is. */
export function short(count: number): string {
  if (Math.abs(count) < 10_000) return grouped(Math.round(count));
  const power = Math.min(Math.floor(Math.log10(Math.abs(count)) / 3), units.length - 1);
  return `${(count / 1000 ** power).toPrecision(3)}${units[power] ?? ''}`;
}

/** With two decimals, or as many as a small amount needs to be seen; the title has all of them. */
export function yuan(amount: NanoYuan): Markup {
  return html`<data value="${formatYuan(amount)}" title="${formatYuan(amount)} yuan"
    >${yuanText(amount)}<span class="unit">¥</span></data
  >`;
}

/** All decimals, where amounts must add up to be believed. */
export const exactYuan = (amount: NanoYuan): Markup =>
  html`${formatYuan(amount).replace('-', '−')}<span class="unit">¥</span>`;

export function yuanText(amount: NanoYuan): string {
  const size = amount < 0n ? -amount : amount;
  const decimals = size === 0n || size >= 1_000_000_000n ? 2 : size >= 1_000_000n ? 4 : 9;
  const unit = 10n ** BigInt(9 - decimals);
  const rounded = (size + unit / 2n) / unit;
  const digits = rounded.toString().padStart(decimals + 1, '0');
  const whole = grouped(BigInt(digits.slice(0, -decimals)));
  const fraction = digits.slice(-decimals).replace(/^(\d\d\d*?)0+$/, '$1');
  return `${amount < 0n && rounded > 0n ? '−' : ''}${whole}.${fraction}`;
}

/** `part` of `whole` in percent. */
export const percent = (part: number | bigint, whole: number | bigint): string =>
  Number(whole) === 0 ? '–' : `${((100 * Number(part)) / Number(whole)).toFixed(1)} %`;

export const milliseconds = (value: number): string =>
  value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(value < 10_000 ? 2 : 1)} s`;

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`;
  return count < 1024 ** 2 ? `${(count / 1024).toFixed(1)} KB` : `${(count / 1024 ** 2).toFixed(2)} MB`;
}
