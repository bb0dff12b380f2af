import * as z from 'zod/mini';
import { amount, flag, integer, modelList } from './attribute-schemas.ts';

const wantedType = '"non-billing", "times-billing" or "token-billing"';

/**
 * A row of the table `charges`: a billing rule. Prices are yuan per 1,000 tokens or (times-billing) per call.
 * The cache's prices are not published, and nothing is charged by them yet; absent: `input`.
 */
export const ChargeRow = z.strictObject({
  id: integer,
  type: z.enum(['non-billing', 'times-billing', 'token-billing'], wantedType),
  models: modelList,
  input: z._default(amount, 0),
  output: z._default(amount, 0),
  cached_input: z.optional(amount),
  cache_write: z.optional(amount),
  cache_write_1h: z.optional(amount),
  anonymous: z._default(flag, false),
});
export type ChargeRow = z.infer<typeof ChargeRow>;
