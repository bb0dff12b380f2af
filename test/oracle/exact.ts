/** Exact sums of the oracle in whole 10^-18 yuan, fine enough for a token at the finest price. */
const digits = 18;
/** Billionths of a yuan, the unit of stored amounts. */
const nanoDigits = 9;

export function exactYuan(written: number | string): bigint {
  const [, whole, fraction = '', exponent = '0'] =
    /^(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/.exec(`${written}`) ?? [];
  if (whole === undefined) throw new Error(`not an amount: ${written}`);
  const places = digits - fraction.length + Number(exponent);
  if (places < 0) throw new Error(`more than ${digits} digits: ${written}`);
  return BigInt(whole + fraction) * 10n ** BigInt(places);
}

/** Rounds once, half up. */
export function nano(exact: bigint): bigint {
  const one = 10n ** BigInt(digits - nanoDigits);
  const below = exact / one;
  return exact % one >= one / 2n ? below + 1n : below;
}
