/** The schema of a row of `charges`, a billing rule. */
import * as z from 'zod/mini';
import { mapInputParts, partPrices } from '../../wire/chat-response.ts';
import {
  amount,
  date,
  flag,
  integer,
  listOf,
  modelList,
  numberBetween,
  positiveInteger,
  time,
  attributeOf,
  readRow,
  type RowReading,
} from './read-row.ts';
import { convertToPico } from '../../billing/price.ts';
import { doOverlap, weekdays } from '../../billing/schedule.ts';
import { isTimeZone } from '../../billing/wall-clock.ts';
import {
  areTerms,
  chargeType,
  rowPartPrices,
  serviceTiers,
  termsShape,
  tiers,
  wantedTerms,
} from './price-terms.ts';
import { listTexts } from '../../wire/json.ts';

const wantedName = 'a name of up to 32 characters a-z 0-9 _ -, starting with a letter';
const wantedHour = 'a time of day such as "09:00"';
const wantedDays = `a list of ${weekdays.join(', ')}`;
const wantedZone = 'the name of a time zone, such as "Asia/Shanghai"';
const windowsMax = 50;
const windowForm = '{name, days, from, to, zone, except, factor} or {..., input, output, ...}';
const wantedWindows = `a list of 1 to ${windowsMax} maps ${windowForm}`;

/** All windows share one zone: windows of two zones could begin to overlap when clocks change. */
export const windows = z.optional(
  listOf(
    z.strictObject(
      {
        name: z.string(wantedName).check(z.regex(/^[a-z][a-z0-9_-]{0,31}$/, wantedName)),
        days: z.optional(listOf(z.enum(weekdays, wantedDays), weekdays.length, wantedDays)),
        from: z.string(wantedHour).check(z.regex(/^([01]\d|2[0-3]):[0-5]\d$/, wantedHour)),
        to: z.string(wantedHour).check(z.regex(/^(([01]\d|2[0-3]):[0-5]\d|24:00)$/, wantedHour)),
        zone: z.string(wantedZone).check(z.refine(isTimeZone, wantedZone)),
        except: z.optional(z.array(date, 'a list of dates such as "2026-10-01"')),
        ...termsShape,
      },
      `a map ${windowForm}`,
    ),
    windowsMax,
    wantedWindows,
  ).check(
    z.refine((all) => new Set(all.map(({ zone }) => zone)).size === 1, 'windows in one time zone'),
    z.refine((all) => !doOverlap(all), 'windows of which no two are open at once'),
  ),
);

/** Prices are yuan per 1,000 tokens or, with times-billing, per call. */
export const ChargeRow = z
  .strictObject({
    id: integer,
    /** The rule is in force from this time on. */
    from: z.optional(time),
    type: chargeType,
    models: modelList,
    input: z._default(amount, 0),
    output: z._default(amount, 0),
    ...rowPartPrices,
    tiers,
    service_tiers: serviceTiers,
    windows,
    max_output_tokens: z.optional(positiveInteger),
    default_output_tokens: z.optional(positiveInteger),
    image_tokens: z.optional(positiveInteger),
    /** Multiplies the estimate of the input for the reservation. */
    input_factor: z.optional(numberBetween(1, 4)),
    anonymous: z._default(flag, false),
  })
  .check(
    z.refine(({ type, windows: all = [] }) => all.every((each) => areTerms(each, type)), {
      error: `windows that each have ${wantedTerms}`,
      path: ['windows'],
    }),
  );
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
  const empty = models.length === 0 && 'models: empty, so this rule has no effect';
  if (type === 'non-billing') {
    const idle = (input > 0 || output > 0) && 'input, output: ignored, because the type is non-billing';
    const hours = row.windows && 'windows: ignored, because the type is non-billing';
    return listTexts(empty, idle, hours, ...warnOfUnusedAttributes(row));
  }
  const free =
    isNothing(output) &&
    (isNothing(input) || type === 'times-billing') &&
    'input, output: nothing is charged (use the type non-billing if intended)';
  if (type === 'times-billing') {
    const idle = input > 0 && 'input: ignored, because the type is times-billing';
    return listTexts(empty, free, idle, ...warnOfUnusedAttributes(row));
  }
  return listTexts(empty, free, ...warnOfTierPrices(row), ...checkLimits(row));
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
