/** The schema of a row of `grants`. */
import * as z from 'zod/mini';
import { accountName, rowId, yuanThat } from './read-row.ts';

const grantAmount = yuanThat(
  'an amount in yuan: not 0, such as 1000 or 12.50, at most 9 decimals (negative: a correction)',
  (amount) => amount !== 0n,
);

/** Applied once. Later changes of the row have no effect. */
export const GrantRow = z.strictObject({
  account: accountName,
  // DynamoDB limits a ledger id, which contains the grant id, to 1 KB.
  grant_id: rowId.check(z.maxLength(200, 'a text of at most 200 characters')),
  amount: grantAmount,
  reason: z.optional(z.string('a text')),
});
export type GrantRow = z.infer<typeof GrantRow>;
