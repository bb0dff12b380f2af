/** Reads a row of `grants` from the attributes that a scan or a table stream returned. */
import { unmarshall } from '@aws-sdk/util-dynamodb';
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
