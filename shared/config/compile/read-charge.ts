import { ChargeRow } from '../rows/charge-row.ts';
import { readRow, type RowReading } from '../rows/read-row.ts';

/**
 * Yuan per 1,000 tokens. A price from this on gets a warning: few models cost as much, but most prices per
 * million tokens are as high.
 */
const perMillionFrom = 1;

/** Reads one row of `charges`. */
export const readCharge = (raw: unknown): RowReading<ChargeRow> => readRow(ChargeRow, raw, chargeWarnings);

function chargeWarnings({ type, models, input, output }: ChargeRow): string[] {
  const empty = models.length === 0 ? ['models: empty, so this rule prices nothing'] : [];
  if (type === 'non-billing') {
    return input > 0 || output > 0
      ? [...empty, 'input, output: without effect, as the type is non-billing']
      : empty;
  }
  const free =
    output === 0 && (input === 0 || type === 'times-billing')
      ? ['input, output: nothing is charged (if that is meant, the type non-billing says so)']
      : [];
  if (type === 'times-billing') {
    return [...empty, ...free, ...(input > 0 ? ['input: without effect, as the type is times-billing'] : [])];
  }
  return [...empty, ...free, ...perMillion('input', input), ...perMillion('output', output)];
}

const perMillion = (attribute: string, price: number): string[] =>
  price < perMillionFrom
    ? []
    : [
        `${attribute}: ${price} yuan per 1,000 tokens looks like a price per million tokens; that would be ${Number((price / 1000).toPrecision(12))} here`,
      ];
