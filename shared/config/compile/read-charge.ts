import { ChargeRow } from '../rows/charge-row.ts';
import { readRow, type RowReading } from '../rows/read-row.ts';

/**
 * Yuan per 1,000 tokens. A price from this on gets a warning: few models cost as much, but most prices per
 * million tokens are as high.
 */
const perMillionFrom = 1;

/** Reads one row of `charges`. */
export const readCharge = (raw: unknown): RowReading<ChargeRow> => readRow(ChargeRow, raw, chargeWarnings);

function chargeWarnings(row: ChargeRow): string[] {
  const { type, models, input, output } = row;
  const empty = models.length === 0 ? ['models: empty, so this rule prices nothing'] : [];
  const cache = cacheWarnings(row);
  if (type === 'non-billing') {
    return input > 0 || output > 0
      ? [...empty, 'input, output: without effect, as the type is non-billing', ...cache]
      : [...empty, ...cache];
  }
  const free =
    output === 0 && (input === 0 || type === 'times-billing')
      ? ['input, output: nothing is charged (if that is meant, the type non-billing says so)']
      : [];
  if (type === 'times-billing') {
    const idle = input > 0 ? ['input: without effect, as the type is times-billing'] : [];
    return [...empty, ...free, ...idle, ...cache];
  }
  return [...empty, ...free, ...perMillion('input', input), ...perMillion('output', output), ...cache];
}

/** The prices of the cache are input prices, so only token-billing has them. */
function cacheWarnings({ type, cached_input, cache_write, cache_write_1h }: ChargeRow): string[] {
  return Object.entries({ cached_input, cache_write, cache_write_1h }).flatMap(([attribute, price = 0]) => {
    if (type === 'token-billing') return perMillion(attribute, price);
    return price > 0 ? [`${attribute}: without effect, as the type is ${type}`] : [];
  });
}

const perMillion = (attribute: string, price: number): string[] =>
  price < perMillionFrom
    ? []
    : [
        `${attribute}: ${price} yuan per 1,000 tokens looks like a price per million tokens; that would be ${Number((price / 1000).toPrecision(12))} here`,
      ];
