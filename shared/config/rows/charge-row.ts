/** The schema of a row of `charges`, a billing rule, and of token prices in a channel's `cost`. */
import * as z from 'zod/mini';
import { mapInputParts, partPrices } from '../../wire/chat-response.ts';
import {
  amount,
  integerBetween,
  flag,
  integer,
  modelList,
  numberBetween,
  positiveInteger,
  time,
  attributeOf,
  readRow,
  type RowReading,
} from './read-row.ts';
import { convertToPico, parseDecimal, rowFactorDecimals } from '../../billing/price.ts';
import { standardTiers } from '../../wire/canonical-call.ts';

/** Parts of the input without a price cost what `input` costs. */
export const rowPartPrices = mapInputParts('price', () => z.optional(amount));

const wantedAbove = 'a whole number of input tokens, 1 or more';
const tierForm = `{above, input, output, ${partPrices.join(', ')}}`;
const wantedTiers = `a list of ${tierForm}`;

const Tier = z.strictObject(
  {
    above: integerBetween(1, Number.MAX_SAFE_INTEGER, wantedAbove),
    input: amount,
    output: amount,
    ...rowPartPrices,
  },
  `a map ${tierForm}`,
);

const isAscending = (tiers: readonly { above: number }[]): boolean =>
  tiers.every(({ above }, at) => above > (tiers[at - 1]?.above ?? 0));

export const tiers = z.optional(
  z
    .array(Tier, wantedTiers)
    .check(z.refine(isAscending, 'tiers in ascending order of above, each different')),
);

const wantedTier =
  'a service tier other than the standard one: up to 32 characters a-z 0-9 _ -, starting with a letter';
const isTier = (name: string): boolean => /^[a-z][a-z0-9_-]{0,31}$/.test(name) && !standardTiers.has(name);
const wantedFactor = 'a factor of more than 0 and at most 100, with at most 6 decimals';
const isFactor = (value: number): boolean =>
  value > 0 && value <= 100 && parseDecimal(value, rowFactorDecimals, true) !== undefined;

export const serviceTiers = z.optional(
  z.record(
    z.string(wantedTier).check(z.refine(isTier, wantedTier)),
    amount.check(z.refine(isFactor, wantedFactor)),
    'a map of service tiers to factors, such as {"flex": 0.5, "priority": 2}',
  ),
);

const wantedType = '"non-billing", "times-billing" or "token-billing"';

/** Prices are yuan per 1,000 tokens or, with times-billing, per call. */
export const ChargeRow = z.strictObject({
  id: integer,
  /** The rule is in force from this time on. */
  from: z.optional(time),
  type: z.enum(['non-billing', 'times-billing', 'token-billing'], wantedType),
  models: modelList,
  input: z._default(amount, 0),
  output: z._default(amount, 0),
  ...rowPartPrices,
  tiers,
  service_tiers: serviceTiers,
  max_output_tokens: z.optional(positiveInteger),
  default_output_tokens: z.optional(positiveInteger),
  image_tokens: z.optional(positiveInteger),
  /** Multiplies the estimate of the input for the reservation. */
  input_factor: z.optional(numberBetween(1, 4)),
  anonymous: z._default(flag, false),
});
export type ChargeRow = z.infer<typeof ChargeRow>;

/** price-warnings.ts checks prices against those of the channels. */
export const readCharge = (raw: unknown): RowReading<ChargeRow> =>
  readRow(ChargeRow, raw, (row) => [...checkCharge(row), ...warnOfMissingPrice(row, raw)]);

/** The row was saved half done, or the attribute has another name. */
function warnOfMissingPrice({ type, ...row }: ChargeRow, raw: unknown): string[] {
  if (type !== 'token-billing' || row.input + row.output === 0) return [];
  const absent = (['input', 'output'] as const).filter((name) => attributeOf(raw, name) === undefined);
  return absent.map((name) => `${name}: missing, so ${name} tokens are free (set 0 if intended)`);
}

/** Smaller prices are rounded to nothing. */
const isNothing = (price: number): boolean => convertToPico(price) === 0n;

function checkCharge(row: ChargeRow): string[] {
  const { type, models, input, output } = row;
  const empty = models.length === 0 ? ['models: empty, so this rule has no effect'] : [];
  if (type === 'non-billing') {
    const idle = input > 0 || output > 0 ? ['input, output: ignored, because the type is non-billing'] : [];
    return [...empty, ...idle, ...warnOfUnusedAttributes(row)];
  }
  const free =
    isNothing(output) && (isNothing(input) || type === 'times-billing')
      ? ['input, output: nothing is charged (use the type non-billing if intended)']
      : [];
  if (type === 'times-billing') {
    const idle = input > 0 ? ['input: ignored, because the type is times-billing'] : [];
    return [...empty, ...free, ...idle, ...warnOfUnusedAttributes(row)];
  }
  return [...empty, ...free, ...warnOfTierPrices(row), ...checkLimits(row)];
}

function warnOfUnusedAttributes({
  type,
  tiers = [],
  image_tokens,
  input_factor,
  ...row
}: ChargeRow): string[] {
  const parts = mapInputParts('price', ({ price }) => row[price]);
  const service_tiers = Object.keys(row.service_tiers ?? {}).length;
  const prices = { ...parts, tiers: tiers.length, service_tiers, image_tokens, input_factor };
  return Object.entries(prices).flatMap(([attribute, value = 0]) =>
    value > 0 ? [`${attribute}: ignored, because the type is ${type}`] : [],
  );
}

/** A tier does not inherit prices of parts, so cached input would cost its full input price. */
function warnOfTierPrices({ tiers = [], ...row }: ChargeRow): string[] {
  return tiers.flatMap((tier, at) =>
    partPrices
      .filter((name) => row[name] !== undefined && tier[name] === undefined)
      .map(
        (name) =>
          `tiers[${at}].${name}: missing, so these tokens cost ${tier.input}, the input price of the tier`,
      ),
  );
}

function checkLimits({ max_output_tokens: most, default_output_tokens: usual }: ChargeRow): string[] {
  if (most === undefined || usual === undefined || usual <= most) return [];
  return [`default_output_tokens: ${usual} exceeds max_output_tokens, so ${most} applies`];
}
