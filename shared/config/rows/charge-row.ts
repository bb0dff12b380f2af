import * as z from 'zod/mini';
import {
  amount,
  flag,
  integer,
  modelList,
  numberBetween,
  positiveInteger,
  time,
} from './attribute-schemas.ts';
import { cachePrices, tiers } from './token-prices.ts';

const wantedType = '"non-billing", "times-billing" or "token-billing"';

/**
 * A row of the table `charges`: a billing rule. Prices are yuan per 1,000 tokens or (times-billing) per call.
 */
export const ChargeRow = z.strictObject({
  id: integer,
  /** Epoch milliseconds: from then on it is in force. Absent: always. */
  from: z.optional(time),
  type: z.enum(['non-billing', 'times-billing', 'token-billing'], wantedType),
  models: modelList,
  input: z._default(amount, 0),
  output: z._default(amount, 0),
  ...cachePrices,
  tiers,
  max_output_tokens: z.optional(positiveInteger),
  default_output_tokens: z.optional(positiveInteger),
  /** Input tokens of one picture. */
  image_tokens: z.optional(positiveInteger),
  /** Multiplies the estimate of the input that a reservation is made of. */
  input_factor: z.optional(numberBetween(1, 4)),
  anonymous: z._default(flag, false),
});
export type ChargeRow = z.infer<typeof ChargeRow>;
