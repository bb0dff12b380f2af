/**
 * Money is a whole number of nano-yuan (10^-9 yuan) in a bigint, so sums are exact. Decimal yuan are read and written
 * only at the edges.
 */
export type NanoYuan = bigint;

const yuanDecimals = 9;
const decimal = /^(-?)(\d{1,30})(?:\.(\d{1,40}))?(?:e([+-]?\d{1,3}))?$/i;

/**
 * A decimal as a whole number of 10^-`decimals`; undefined when it is not a decimal. What does not fit is rounded
 * half up, or refused when `exact`. Takes numbers by their shortest decimal form: 0.1 is a tenth.
 */
export function parseDecimal(value: string | number, decimals: number, exact = false): bigint | undefined {
  const match = decimal.exec(String(value).trim());
  if (!match) return undefined;
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const shift = decimals + Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction) * 10n ** BigInt(Math.max(shift, 0));
  const divisor = 10n ** BigInt(Math.max(-shift, 0));
  if (exact && digits % divisor !== 0n) return undefined;
  const scaled = divideHalfUp(digits, divisor);
  return sign === '-' ? -scaled : scaled;
}

/** Yuan, with at most 9 decimals, as nano-yuan; undefined when it is not such a decimal. */
export const parseYuan = (value: string | number): NanoYuan | undefined =>
  parseDecimal(value, yuanDecimals, true);

/** A whole number of 10^-`decimals` as the shortest exact decimal: 1500000000 nano-yuan are "1.5" yuan. */
export function formatDecimal(value: bigint, decimals: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, -decimals);
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return `${value < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

export const formatYuan = (amount: NanoYuan): string => formatDecimal(amount, yuanDecimals);

/** Yuan as a JSON number, for answers. It is a float: not for sums. */
export const yuanNumber = (amount: NanoYuan): number => Number(formatYuan(amount));

/** Divides a value that is not negative, rounding half up: the only rounding of money. */
export const divideHalfUp = (value: bigint, divisor: bigint): bigint => (value + divisor / 2n) / divisor;

export const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);
