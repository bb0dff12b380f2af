/** Amounts of money: whole nano-yuan, exact decimals as text, and the one rounding. */

/** Whole nano-yuan (10^-9 yuan), so sums are exact. Decimal yuan exist only in input and output. */
export type NanoYuan = bigint;

const yuanDecimals = 9;
/** A decimal as people write it, with blanks around it. */
export const decimalText = /^\s*(-?)(\d{1,30})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,3}))?\s*$/;

/**
 * Converts a decimal to an integer count of 10^-`decimals`. Rounds excess digits half up; with `exact`, returns undefined instead. Reads
 * numbers in their shortest decimal form, so 0.1 is exactly a tenth.
 */
export function parseDecimal(value: string | number, decimals: number, exact = false): bigint | undefined {
  const match = decimalText.exec(String(value));
  if (!match) return undefined;
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  const shift = decimals + Number(exponent) - fraction.length;
  let scaled = BigInt(whole + fraction + '0'.repeat(Math.max(shift, 0)));
  if (shift < 0) {
    const divisor = 10n ** BigInt(-shift);
    if (exact && scaled % divisor !== 0n) return undefined;
    scaled = divideHalfUp(scaled, divisor);
  }
  return sign === '-' ? -scaled : scaled;
}

/** Accepts at most 9 decimals. */
export const parseYuan = (value: string | number): NanoYuan | undefined =>
  parseDecimal(value, yuanDecimals, true);

/** Formats 1500000000 with 9 decimals as "1.5". */
export function formatDecimal(value: bigint, decimals: number): string {
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, '0');
  const whole = digits.slice(0, -decimals);
  const fraction = digits.slice(-decimals).replace(/0+$/, '');
  return `${value < 0n ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

export const formatYuan = (amount: NanoYuan): string => formatDecimal(amount, yuanDecimals);

/** For JSON of responses. Never add up these floats. */
export const convertToYuanNumber = (amount: NanoYuan): number => Number(formatYuan(amount));

/** No other function rounds money. The value must not be negative. */
export const divideHalfUp = (value: bigint, divisor: bigint): bigint => (value + divisor / 2n) / divisor;

export const compareLargestFirst = (a: bigint, b: bigint): number => (a > b ? -1 : Number(a < b));

export const smaller = (a: bigint, b: bigint): bigint => (a < b ? a : b);
export const larger = (a: bigint, b: bigint): bigint => (a > b ? a : b);
