/** Makes billing rules of listed prices: yuan per 1,000 tokens, one rule for all models with the same prices. */
import { divideHalfUp, formatDecimal } from '../../billing/amount.ts';
import type { WrittenPrice, WrittenRates } from '../../billing/price.ts';
import type { ChargeRow } from '../../config/rows/charge-row.ts';
import type { RawRow } from '../row-tables.ts';
import { dollarDecimals, rateNames, type ListedPrice, type ListedRates } from './listed-price.ts';

export type NewCharge = Omit<ChargeRow, 'anonymous'>;

/** Decimals to which yuan per 1,000 tokens are rounded. */
const priceDecimals = 9;
export const factorDecimals = 12;

/** One rule for all models with the same prices and the same maximum; free models come first. */
export function newCharges(prices: ListedPrice[], factor: bigint, firstId: number): NewCharge[] {
  const inYuan = prices.map(({ model, tiers, maxOutputTokens, ...rates }) => ({
    model,
    price: {
      ...yuanRates(rates, factor),
      tiers:
        tiers.length > 0
          ? tiers.map(({ above, ...tier }) => ({ above, ...yuanRates(tier, factor) }))
          : undefined,
      max_output_tokens: maxOutputTokens,
    },
  }));
  return [...Map.groupBy(inYuan, ({ price }) => JSON.stringify(price)).values()]
    .flatMap((same) =>
      same.slice(0, 1).map(({ price }) => ({ price, models: same.map(({ model }) => model) })),
    )
    .toSorted((a, b) => a.price.output - b.price.output || a.price.input - b.price.input)
    .map(({ price, models }, at) => newCharge(firstId + at, models, price));
}

const newCharge = (
  id: number,
  models: string[],
  price: Omit<NewCharge, 'id' | 'type' | 'models'>,
): NewCharge => ({
  id,
  type: isFree(price) ? 'non-billing' : 'token-billing',
  models: models.toSorted(),
  ...price,
});

const isFree = ({ tiers = [], ...base }: WrittenPrice): boolean =>
  [base, ...tiers].every(({ input, output }) => input === 0 && output === 0);

/** The row to write. A free rule has no prices. */
export function rowOf({ id, type, models, ...prices }: NewCharge): RawRow {
  const { max_output_tokens } = prices;
  const written = type === 'non-billing' ? { max_output_tokens } : prices;
  const present = Object.entries(written).filter(([, value]) => value !== undefined);
  return { id, type, models, ...Object.fromEntries(present) };
}

/** Converts dollars per token to yuan per 1,000 tokens. Prices of the cache that are those of input are left out. */
function yuanRates(rates: ListedRates, factor: bigint): WrittenRates {
  const differing = rateNames.flatMap((name) => {
    const dollars = rates[name];
    const isSame = name !== 'input' && name !== 'output' && dollars === rates.input;
    return dollars === undefined || isSame ? [] : [[name, yuanOf(dollars, factor)] as const];
  });
  return { input: 0, output: 0, ...Object.fromEntries(differing) };
}

/** `factor`: yuan per dollar, including the markup. */
function yuanOf(dollars: bigint, factor: bigint): number {
  const scale = 10n ** BigInt(dollarDecimals + factorDecimals - priceDecimals);
  return Number(formatDecimal(divideHalfUp(dollars * 1000n * factor, scale), priceDecimals));
}
