/** Converts amounts as Stripe writes them, whole numbers of a currency's smallest unit, to yuan and to text. */
import { formatDecimal, parseDecimal, type NanoYuan } from '../amount.ts';

/** An amount in the smallest unit of a currency, as Stripe writes it: 1000 `usd` are 10 dollars, 1000 `jpy` 1000 yen. */
export interface PaymentAmount {
  minor: bigint;
  /** ISO 4217, in small letters. */
  currency: string;
}

/** Currencies whose amounts Stripe writes without decimals. https://docs.stripe.com/currencies */
const withoutDecimals = new Set('bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' '));
const withThreeDecimals = new Set('bhd jod kwd omr tnd'.split(' '));

/** Stripe describes `ugx` both with and without decimals, so its amounts have two meanings. */
export const ambiguousCurrency = 'ugx';

/** All other currencies have two, `isk` too, whose amounts Stripe still writes with two. */
export function decimalsOf(currency: string): 0 | 2 | 3 {
  if (withoutDecimals.has(currency)) return 0;
  return withThreeDecimals.has(currency) ? 3 : 2;
}

/** Rates have at most this many decimals, so that every conversion is exact and nothing is rounded. */
export const rateDecimals = 6;

/** @param rate yuan for one unit of the currency, a decimal with at most 6 decimals */
export function yuanOf({ minor, currency }: PaymentAmount, rate: string): NanoYuan {
  const micro = parseDecimal(rate, rateDecimals, true);
  if (micro === undefined) throw new Error('payments: a rate that is not a decimal');
  return minor * micro * 10n ** BigInt(3 - decimalsOf(currency));
}

/** The amount as people write it: `10.5 usd`. */
export function paymentText({ minor, currency }: PaymentAmount): string {
  const decimals = decimalsOf(currency);
  return `${decimals === 0 ? minor : formatDecimal(minor, decimals)} ${currency}`;
}

/** Reads an amount as people write it; undefined: not a decimal, or more decimals than the currency has. */
export function parsePayment(written: string, currency: string): PaymentAmount | undefined {
  const minor = parseDecimal(written, decimalsOf(currency), true);
  return minor === undefined ? undefined : { minor, currency };
}
