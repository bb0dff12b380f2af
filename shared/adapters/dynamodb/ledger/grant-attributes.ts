/** Reads a row of `grants` from the attributes that a scan or a table stream returned. */
import { unmarshall } from '@aws-sdk/util-dynamodb';
import type { WrittenGrant } from '../../../billing/grant.ts';
import type { GrantImage } from '../../../relay/ports/stores/grant-store.ts';
import { Poisoned } from '../../../relay/ports/stores/store-errors.ts';
import type { Attributes } from '../attributes.ts';

/**
 * Numbers stay text; the schema of the row parses them exactly. Throws Poisoned when the row lacks the
 * table's key.
 */
export function readGrantImage(attributes: Attributes): GrantImage {
  const { account, grant_id, ...rest } = unmarshall(attributes, { wrapNumbers: (text) => text });
  if (typeof account !== 'string' || typeof grant_id !== 'string')
    throw new Poisoned('grants: a row without its key');
  return { account, grant_id, ...rest };
}

/** As an operator wrote it, with what the relay made of it. */
export const writtenGrantOf = (item: Attributes): WrittenGrant => ({
  account: item['account']?.S ?? '',
  grantId: item['grant_id']?.S ?? '',
  amount: item['amount']?.N ?? item['amount']?.S ?? 'nothing',
  applied: item['_applied']?.S,
  problem: item['_problem']?.S,
  reason: item['reason']?.S,
});
