import * as z from 'zod/mini';
import { amount, flag, integer, modelList } from './attribute-schemas.ts';

const wantedType = '"non-billing", "times-billing" or "token-billing"';

/**
 * A row of the table `charges`: a billing rule. Prices are yuan per 1,000 tokens or (times-billing) per call.
 */
export const ChargeRow = z.strictObject({
  id: integer,
  type: z.enum(['non-billing', 'times-billing', 'token-billing'], wantedType),
  models: modelList,
  input: z._default(amount, 0),
  output: z._default(amount, 0),
  anonymous: z._default(flag, false),
});
export type ChargeRow = z.infer<typeof ChargeRow>;
