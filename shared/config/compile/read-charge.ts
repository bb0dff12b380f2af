import { toPico } from '../../billing/price.ts';
import { ChargeRow } from '../rows/charge-row.ts';
import { attributeOf, readRow, type RowReading } from '../rows/read-row.ts';

/** Reads one row of `charges`. Whether prices are plausible is a matter of the channels, too: price-warnings.ts. */
export const readCharge = (raw: unknown): RowReading<ChargeRow> =>
  readRow(ChargeRow, raw, (row) => [...chargeWarnings(row), ...forgottenPrice(row, raw)]);

/** One of two prices is absent, which is 0: the row was saved half done, or the attribute has another name. */
function forgottenPrice({ type, ...row }: ChargeRow, raw: unknown): string[] {
  if (type !== 'token-billing' || row.input + row.output === 0) return [];
  const absent = (['input', 'output'] as const).filter((name) => attributeOf(raw, name) === undefined);
  return absent.map((name) => `${name}: absent, so ${name} tokens are free (if that is meant, 0 says so)`);
}

/** Below what bills are computed with, a price is rounded away. */
const isNothing = (price: number): boolean => toPico(price) === 0n;

function chargeWarnings(row: ChargeRow): string[] {
  const { type, models, input, output } = row;
  const empty = models.length === 0 ? ['models: empty, so this rule prices nothing'] : [];
  if (type === 'non-billing') {
    const idle = input > 0 || output > 0 ? ['input, output: without effect, as the type is non-billing'] : [];
    return [...empty, ...idle, ...idleWarnings(row)];
  }
  const free =
    isNothing(output) && (isNothing(input) || type === 'times-billing')
      ? ['input, output: nothing is charged (if that is meant, the type non-billing says so)']
      : [];
  if (type === 'times-billing') {
    const idle = input > 0 ? ['input: without effect, as the type is times-billing'] : [];
    return [...empty, ...free, ...idle, ...idleWarnings(row)];
  }
  return [...empty, ...free, ...cacheOfTiers(row), ...limitWarnings(row)];
}

/** What decides token prices and their reservation has no effect on other types. */
function idleWarnings({ type, cached_input, cache_write, cache_write_1h, ...row }: ChargeRow): string[] {
  const { tiers = [], image_tokens, input_factor } = row;
  const prices = {
    cached_input,
    cache_write,
    cache_write_1h,
    tiers: tiers.length,
    image_tokens,
    input_factor,
  };
  return Object.entries(prices).flatMap(([attribute, value = 0]) =>
    value > 0 ? [`${attribute}: without effect, as the type is ${type}`] : [],
  );
}

/** A tier does not take over the prices of the cache, so cached input would cost its whole input price. */
function cacheOfTiers({ tiers = [], ...row }: ChargeRow): string[] {
  const names = ['cached_input', 'cache_write', 'cache_write_1h'] as const;
  return tiers.flatMap((tier, at) =>
    names
      .filter((name) => row[name] !== undefined && tier[name] === undefined)
      .map((name) => `tiers[${at}].${name}: absent, so such tokens cost ${tier.input}, the entry's input`),
  );
}

function limitWarnings({ max_output_tokens: most, default_output_tokens: usual }: ChargeRow): string[] {
  if (most === undefined || usual === undefined || usual <= most) return [];
  return [`default_output_tokens: ${usual} is more than max_output_tokens, so ${most} counts`];
}
