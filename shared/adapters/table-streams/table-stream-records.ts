import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { DynamoDBRecord } from 'aws-lambda';
import type { QuotaItem } from '../../billing/quota-item.ts';
import type { GrantImage } from '../../relay/ports/grant-store.ts';
import type { QuotaChange } from '../../relay/ports/ledger-store.ts';
import { Poisoned } from '../../relay/ports/store-errors.ts';
import { quotaOf, type Attributes } from '../dynamodb/quotas/quota-attributes.ts';

/** A record of the stream of `quotas`. Throws Poisoned. */
export function quotaChangeOf({ dynamodb }: DynamoDBRecord): QuotaChange {
  const account = dynamodb?.Keys?.['account']?.S;
  if (account === undefined) throw new Poisoned('quotas: a record without its key');
  const { OldImage, NewImage } = dynamodb ?? {};
  return {
    account,
    before: OldImage && readQuota(OldImage as Attributes),
    after: NewImage && readQuota(NewImage as Attributes),
  };
}

/** Throws Poisoned when functions did not write the item. */
export function readQuota(attributes: Attributes): QuotaItem {
  try {
    return quotaOf(attributes);
  } catch (error) {
    throw new Poisoned(error instanceof Error ? error.message : 'quotas: not readable', { cause: error });
  }
}

/** A record of the stream of `grants`; undefined: the row was removed. Throws Poisoned. */
export function grantImageOf({ dynamodb }: DynamoDBRecord): GrantImage | undefined {
  return dynamodb?.NewImage && readGrantImage(dynamodb.NewImage as Attributes);
}

/** Throws Poisoned when the row has not the table's key. */
export function readGrantImage(attributes: Attributes): GrantImage {
  const { account, grant_id, ...rest } = attributes;
  if (account?.S === undefined || grant_id?.S === undefined)
    throw new Poisoned('grants: a row without its key');
  const cells = Object.entries(rest).map(([name, value]) => [name, cellOf(value)]);
  return { account: account.S, grant_id: grant_id.S, ...Object.fromEntries(cells) };
}

/** Numbers stay text: the schema of the row reads them exactly. */
function cellOf({ S, N, BOOL, L, M, NULL }: AttributeValue): unknown {
  if (NULL === true) return null;
  return S ?? N ?? BOOL ?? L ?? M ?? new Set();
}
