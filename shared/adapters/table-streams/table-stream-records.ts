/** Reads the records of table streams. */
import type { DynamoDBRecord } from 'aws-lambda';
import type { GrantImage } from '../../relay/ports/stores/grant-store.ts';
import type { QuotaChange } from '../../relay/ports/stores/ledger-store.ts';
import { Poisoned } from '../../relay/ports/stores/store-errors.ts';
import { attributesOfImage, type Attributes } from '../dynamodb/attributes.ts';
import { noticePrefix } from '../dynamodb/alerts/alert-items.ts';
import { readGrantImage } from '../dynamodb/ledger/grant-attributes.ts';
import { readQuota } from '../dynamodb/quotas/quota-attributes.ts';

/** The change in a record of the table stream of `quotas`. Throws Poisoned. */
export function quotaChangeOf({ dynamodb }: DynamoDBRecord): QuotaChange {
  const account = dynamodb?.Keys?.['account']?.S;
  if (account === undefined) throw new Poisoned('quotas: a record without its key');
  const { OldImage, NewImage } = dynamodb ?? {};
  return {
    item: account,
    account,
    before: OldImage && readQuota(OldImage as Attributes),
    after: NewImage && readQuota(NewImage as Attributes),
  };
}

/** The row in a record of the table stream of `grants`. Undefined: the row was removed. Throws Poisoned. */
export const grantImageOf = ({ dynamodb }: DynamoDBRecord): GrantImage | undefined =>
  dynamodb?.NewImage && readGrantImage(attributesOfImage(dynamodb.NewImage));

/** The id of a new notice in a record of the table stream of `runtime`. Undefined: the item is another one. */
export function noticeIdOf({ dynamodb }: DynamoDBRecord): string | undefined {
  const id = dynamodb?.Keys?.['id']?.S;
  return id?.startsWith(noticePrefix) ? id.slice(noticePrefix.length) : undefined;
}
